package results

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// forever is the end of an interval that was still open when the trace ended.
const forever = time.Duration(math.MaxInt64)

// interval is the time from (included) to (excluded).
type interval struct{ from, to time.Duration }

// intervals is a set of instants: sorted, disjoint, not empty intervals.
type intervals []interval

// union is the set of all instants that are in one of the given intervals.
func union(given []interval) intervals {
	sorted := slices.Clone(given)
	slices.SortFunc(sorted, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	var set intervals
	for _, next := range sorted {
		switch last := len(set) - 1; {
		case next.from >= next.to:
		case last >= 0 && next.from <= set[last].to:
			set[last].to = max(set[last].to, next.to)
		default:
			set = append(set, next)
		}
	}
	return set
}

// minus is the set without the instants of other.
func (s intervals) minus(other intervals) intervals {
	var rest intervals
	for _, piece := range s {
		for len(other) > 0 && other[0].to <= piece.from {
			other = other[1:] // nor does it reach a later piece
		}
		for _, hole := range other {
			if hole.from >= piece.to {
				break
			}
			if hole.from > piece.from {
				rest = append(rest, interval{piece.from, hole.from})
			}
			piece.from = min(hole.to, piece.to)
		}
		if piece.from < piece.to {
			rest = append(rest, piece)
		}
	}
	return rest
}

// intersect is the set of the instants that are in both.
func (s intervals) intersect(other intervals) intervals { return s.minus(s.minus(other)) }

// periods are the intervals, the last one cut off at end.
func (s intervals) periods(end time.Duration) []Period {
	var all []Period
	for _, piece := range s {
		all = append(all, Period{piece.from, min(piece.to, end)})
	}
	return all
}

// lengthUntil is the total length of the part before end.
func (s intervals) lengthUntil(end time.Duration) time.Duration {
	var total time.Duration
	for _, piece := range s.intersect(intervals{{math.MinInt64, end}}) {
		total += piece.to - piece.from
	}
	return total
}
