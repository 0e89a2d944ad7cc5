package agreement

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// storm measures the storms of all runs.
func (m *measurement) storm() {
	s := &m.timing.Storm
	var ofModel, ofReal []float64
	for _, run := range m.runs {
		r := stormOf(run.groups[m.plan.Storm.Model], run.groups[m.plan.Storm.Real])
		s.Runs = append(s.Runs, r)
		if r != nil {
			ofModel, ofReal = append(ofModel, math.Log(r.Model)), append(ofReal, math.Log(r.Real))
		}
	}
	s.Ratio = exponential(stats.ComparePaired(ofReal, ofModel).Difference) // leaves out the infinite logarithms of a rate of 0
	s.judge()
}

// stormOf is the storm of a run; nil if there was none, or no time in which there could be one on all nodes.
func stormOf(modelled, ofReal []*node) *StormRun {
	if len(modelled) == 0 || len(ofReal) == 0 {
		return nil
	}
	var from time.Duration
	to := time.Duration(math.MaxInt64)
	for _, nodes := range [][]*node{modelled, ofReal} {
		for _, n := range nodes {
			from = max(from, n.registered+StatusTick)
			if n.mirrored == nil {
				return nil
			}
			to = min(to, *n.mirrored)
		}
	}
	if to <= from {
		return nil
	}
	seconds := (to - from).Seconds()
	r := &StormRun{Seconds: seconds, ModelNodes: len(modelled), RealNodes: len(ofReal)}
	r.Model = float64(failedBetween(modelled, from, to)) / seconds / float64(len(modelled))
	r.Real = float64(failedBetween(ofReal, from, to)) / seconds / float64(len(ofReal))
	if r.Model == 0 && r.Real == 0 {
		return nil
	}
	return r
}

func failedBetween(nodes []*node, from, to time.Duration) int {
	count := 0
	for _, n := range nodes {
		for _, r := range n.rejected {
			if r.failed != nil && *r.failed >= from && *r.failed < to {
				count++
			}
		}
	}
	return count
}

// exponential turns an estimate of a difference of logarithms into one of a ratio.
func exponential(e stats.Estimate) stats.Estimate {
	if e.Value != nil {
		e.Value = new(math.Exp(*e.Value))
	}
	if e.Interval != nil {
		e.Interval = &stats.Interval{Low: math.Exp(e.Interval.Low), High: math.Exp(e.Interval.High)}
	}
	return e
}

func (s *Storm) judge() {
	low, high := 1-Tolerance, 1+Tolerance
	s.Outcome = verdict.Inconclusive
	oneSided := slices.ContainsFunc(s.Runs, func(r *StormRun) bool { return r != nil && (r.Model == 0 || r.Real == 0) })
	switch i := s.Ratio.Interval; {
	case oneSided:
		s.Outcome, s.Reason = verdict.Failed, "in one run or more only one side had a storm"
	case s.Ratio.Value == nil:
		s.Reason = "no run had a storm"
	case i == nil:
		s.Reason = fmt.Sprintf("model/real %.2f, of too few runs (%d) to have an interval: it takes 6", *s.Ratio.Value, s.Ratio.N)
	case i.Low >= low && i.High <= high:
		s.Outcome = verdict.Passed
		s.Reason = fmt.Sprintf("model/real %.2f, and its interval %.2f–%.2f is within %.2g–%.2g", *s.Ratio.Value, i.Low, i.High, low, high)
	case i.High < low || i.Low > high:
		s.Outcome = verdict.Failed
		s.Reason = fmt.Sprintf("model/real %.2f, and its interval %.2f–%.2f is outside of %.2g–%.2g", *s.Ratio.Value, i.Low, i.High, low, high)
	default:
		s.Reason = fmt.Sprintf("model/real %.2f, and its interval %.2f–%.2f is neither within nor outside of %.2g–%.2g", *s.Ratio.Value, i.Low, i.High, low, high)
	}
}
