package plot

import (
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
)

// ticks chooses ticks between two values, of which there should be about as many as count.
type ticks func(low, high, count float64) []plot.Tick

// numberTicks are at multiples of 1, 2 or 5 times a power of ten.
func numberTicks(low, high, count float64) []plot.Tick {
	step := niceStep((high - low) / count)
	return ticksAt(low, high, step, func(x float64) string { return fixed(x, decimals(step)) })
}

// percentTicks are numberTicks of shares.
func percentTicks(low, high, count float64) []plot.Tick {
	step := niceStep((high - low) / count)
	return ticksAt(low, high, step, func(x float64) string { return fixed(100*x, decimals(100*step)) + " %" })
}

// timeTicks are at steps that clocks have; values are in seconds.
func timeTicks(low, high, count float64) []plot.Tick {
	least := (high - low) / count
	for _, unit := range []struct {
		name    string
		seconds float64
		steps   []float64
	}{{"s", 1, []float64{1, 2, 5, 10, 15, 30}}, {"min", 60, []float64{1, 2, 5, 10, 15, 30}}, {"h", 3600, []float64{1, 2, 3, 6, 12, 24}}} {
		for _, steps := range unit.steps {
			if step := steps * unit.seconds; least <= step && least > 0.5 {
				return ticksAt(low, high, step, func(x float64) string { return fixed(x/unit.seconds, 0) + " " + unit.name })
			}
		}
	}
	if least > 0.5 {
		step := niceStep(least / 3600)
		return ticksAt(low, high, step*3600, func(x float64) string { return fixed(x/3600, 0) + " h" })
	}
	step := niceStep(least)
	return ticksAt(low, high, step, func(x float64) string { return fixed(x, decimals(step)) + " s" })
}

// logTicks are at powers of ten, and at 2 and 5 times these where there are few.
func logTicks(unit string) ticks {
	return func(low, high, count float64) []plot.Tick {
		var all []plot.Tick
		decades := math.Log10(high / low)
		every := max(1, math.Ceil(decades/count))
		for power := math.Floor(math.Log10(low)); power <= math.Log10(high)+1e-9; power++ {
			for factor := 1.0; factor < 10; factor++ {
				t := plot.Tick{Value: factor * math.Pow(10, power)}
				if (factor == 1 && math.Mod(power, every) == 0) || (decades*3 <= count && (factor == 2 || factor == 5)) {
					t.Label = Number(t.Value) + unit
				}
				if t.Value >= low*(1-1e-9) && t.Value <= high*(1+1e-9) {
					all = append(all, t)
				}
			}
		}
		return all
	}
}

func niceStep(least float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, factor := range []float64{1, 2, 5} {
		if factor*power >= least*(1-1e-9) {
			return factor * power
		}
	}
	return 10 * power
}

// decimals is how many a multiple of a step needs.
func decimals(step float64) int { return max(0, int(-math.Floor(math.Log10(step)+1e-9))) }

func ticksAt(low, high, step float64, label func(float64) string) []plot.Tick {
	var all []plot.Tick
	const most = 100 // more have no room: the axis is so far from 0 that its steps are lost in rounding
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9 && len(all) < most; i++ {
		all = append(all, plot.Tick{Value: i * step, Label: label(i * step)})
	}
	return all
}

// Number writes a number with at most three decimals (of those below 0.001 three significant ones), and commas between thousands: 1,577.25; 0.034.
func Number(x float64) string {
	switch size := math.Abs(x); {
	case !finite(x):
		return "–"
	case size > 0 && size < 0.001:
		return strconv.FormatFloat(x, 'g', 3, 64)
	default:
		return trimmed(fixed(x, 3))
	}
}

// brief writes a number with about three significant digits: 1,577; 12.5; 0.034.
func brief(x float64) string {
	size := math.Abs(x)
	if !finite(x) || size < 0.001 {
		return Number(x)
	}
	return trimmed(fixed(x, max(0, 2-int(math.Floor(math.Log10(size))))))
}

// trimmed drops zeros at the end of a fraction.
func trimmed(s string) string {
	if !strings.Contains(s, ".") || strings.Contains(s, "e") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// fixed writes a number with so many decimals, and commas between thousands; with an exponent where it would be too long.
func fixed(x float64, decimals int) string {
	if decimals > 9 || math.Abs(x) >= 1e15 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	digits := strconv.FormatFloat(math.Abs(x), 'f', decimals, 64)
	whole, fraction, cut := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if cut {
		whole += "." + fraction
	}
	if x < 0 && strings.ContainsAny(digits, "123456789") {
		return "−" + whole
	}
	return whole
}

// short writes a number in few places: 1.6k.
func short(x float64) string {
	for _, unit := range []struct {
		name string
		size float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if math.Abs(x) >= unit.size {
			return trimmed(fixed(x/unit.size, 1)) + unit.name
		}
	}
	return brief(x)
}
