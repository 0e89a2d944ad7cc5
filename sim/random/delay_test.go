package random

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

const sec = time.Second

func d(t time.Duration) metav1.Duration { return metav1.Duration{Duration: t} }

// cases are one valid delay of each distribution with its distribution function and mean in seconds, written down independently of gonum.
var cases = []struct {
	name  string
	delay *Delay
	cdf   func(t float64) float64
	mean  float64
}{
	{"uniform", Uniform(2*sec, 6*sec), func(t float64) float64 { return min(max((t-2)/4, 0), 1) }, 4},
	{"normal far from 0", &Delay{Normal: &NormalDelay{d(10 * sec), d(sec)}}, func(t float64) float64 { return phi(t - 10) }, 10},
	{"normal cut at 0", &Delay{Normal: &NormalDelay{d(sec), d(2 * sec)}}, func(t float64) float64 {
		below := phi(-0.5)
		return max(phi((t-1)/2)-below, 0) / (1 - below)
	}, 1 + 2*density(-0.5)/(1-phi(-0.5))},
	{"lognormal", &Delay{Lognormal: &LognormalDelay{d(3 * sec), 0.5}}, func(t float64) float64 { return phi(math.Log(t/3) / 0.5) },
		3 * math.Exp(0.125)},
	{"exponential", &Delay{Exponential: &ExponentialDelay{d(5 * sec)}}, func(t float64) float64 { return 1 - math.Exp(-t/5) }, 5},
	{"weibull", &Delay{Weibull: &WeibullDelay{2, d(4 * sec)}}, func(t float64) float64 { return 1 - math.Exp(-t*t/16) },
		4 * math.Gamma(1.5)},
	{"preset", Named(PresetKubelet122), func(t float64) float64 { return min(max((t-60)/30, 0), 1) }, 75},
}

func phi(x float64) float64     { return 0.5 * math.Erfc(-x/math.Sqrt2) }
func density(x float64) float64 { return math.Exp(-x*x/2) / math.Sqrt(2*math.Pi) }

func samples(delay *Delay, n int) []float64 {
	r := Seed(7).Stream("test", "object")
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = delay.Sample(r).Seconds()
	}
	return xs
}

// TestDistribution compares seeded samples with the closed forms: the whole distribution function by the Kolmogorov–Smirnov statistic, and
// the mean. The bounds are those that a right sampler exceeds once in 1,000 seeds; the seed is fixed.
func TestDistribution(t *testing.T) {
	const n = 20000
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			xs := samples(c.delay, n)
			slices.Sort(xs)
			var ks, sum, squares float64
			for i, x := range xs {
				p := c.cdf(x)
				ks = max(ks, math.Abs(p-float64(i)/n), math.Abs(p-float64(i+1)/n))
				sum += x
				squares += x * x
			}
			if limit := 1.95 / math.Sqrt(n); ks > limit {
				t.Errorf("Kolmogorov–Smirnov distance %.4f, want at most %.4f", ks, limit)
			}
			mean := sum / n
			if limit := 3.3 * math.Sqrt((squares/n-mean*mean)/n); math.Abs(mean-c.mean) > limit {
				t.Errorf("mean %.3f s, want %.3f ± %.3f s", mean, c.mean, limit)
			}
		})
	}
}

func TestQuantileInvertsDistributionFunction(t *testing.T) {
	for _, c := range cases {
		for _, p := range []float64{0.001, 0.1, 0.5, 0.9, 0.999} {
			if got := c.cdf(c.delay.Quantile(p).Seconds()); math.Abs(got-p) > 1e-6 {
				t.Errorf("%s: F(Quantile(%v)) = %v", c.name, p, got)
			}
		}
	}
}

func TestUpper(t *testing.T) {
	for _, c := range cases {
		if got := c.cdf(c.delay.Upper().Seconds()); got < 0.9999-1e-6 {
			t.Errorf("%s: F(Upper()) = %v, want at least 0.9999", c.name, got)
		}
	}
	if got := Constant(3 * sec).Upper(); got != 3*sec {
		t.Errorf("upper bound of a constant is %v", got)
	}
	if got := (&Delay{Empirical: &EmpiricalDelay{Values: []metav1.Duration{d(sec), d(8 * sec)}}}).Upper(); got != 8*sec {
		t.Errorf("upper bound of measured values is %v, want their maximum", got)
	}
}

func TestEmpiricalDrawsEveryValueEquallyOften(t *testing.T) {
	values := []metav1.Duration{d(sec), d(2 * sec), d(2 * sec), d(7 * sec)}
	counts := map[float64]int{}
	const n = 40000
	for _, x := range samples(&Delay{Empirical: &EmpiricalDelay{Values: values}}, n) {
		counts[x]++
	}
	for x, share := range map[float64]float64{1: 0.25, 2: 0.5, 7: 0.25} {
		if got := float64(counts[x]) / n; math.Abs(got-share) > 0.01 {
			t.Errorf("%v s drawn with frequency %v, want %v", x, got, share)
		}
		delete(counts, x)
	}
	if len(counts) > 0 {
		t.Errorf("values that were never measured: %v", counts)
	}
}

func TestSampleTakesOneNumber(t *testing.T) {
	want := Seed(1).Stream("a", "b")
	want.Float64()
	next := want.Float64()
	for _, c := range append(cases, struct {
		name  string
		delay *Delay
		cdf   func(float64) float64
		mean  float64
	}{name: "constant", delay: Constant(sec)}) {
		r := Seed(1).Stream("a", "b")
		c.delay.Sample(r)
		if r.Float64() != next {
			t.Errorf("%s: a sample does not take exactly one number from the stream", c.name)
		}
	}
}

func TestHeavyTailIsCut(t *testing.T) {
	heavy := &Delay{Lognormal: &LognormalDelay{d(time.Hour), 1e6}}
	if errs := heavy.Validate(nil); len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, p := range []float64{0, 0.4, 0.6, 1} {
		if q := heavy.Quantile(p); q < 0 || q > Longest {
			t.Errorf("Quantile(%v) = %v", p, q)
		}
	}
}

func TestValidate(t *testing.T) {
	for yamlText, want := range map[string][]string{
		`{}`:                                                        {"delay: Required value: set one of constant, uniform"},
		`{constant: 1s, preset: kubelet-1.32}`:                      {"delay: Forbidden: set only one distribution"},
		`{constant: -1s}`:                                           {`delay.constant: Invalid value: "-1s"`},
		`{constant: 2000000h}`:                                      {`delay.constant: Invalid value`},
		`{uniform: {min: 3s, max: 2s}}`:                             {`delay.uniform.max: Invalid value: "2s": must not be less than min, 3s`},
		`{uniform: {min: -3s, max: -2s}}`:                           {`delay.uniform.min`, `delay.uniform.max`},
		`{normal: {mean: -1s, stddev: 0s}}`:                         {`delay.normal.mean`, `delay.normal.stddev: Invalid value: "0s": must be more than 0s`},
		`{lognormal: {median: 0s, sigma: -1}}`:                      {`delay.lognormal.median`, `delay.lognormal.sigma: Invalid value: -1`},
		`{exponential: {}}`:                                         {`delay.exponential.mean`},
		`{weibull: {scale: 1s}}`:                                    {`delay.weibull.shape: Invalid value: 0: must be a positive number`},
		`{empirical: {}}`:                                           {`delay.empirical: Required value`},
		`{empirical: {values: [2s, 1s, -1s]}}`:                      {`delay.empirical.values[1]`, `delay.empirical.values[2]`, `delay.empirical.values[2]`},
		`{preset: kubelet-2.0}`:                                     {`delay.preset: Unsupported value: "kubelet-2.0": supported values: "kubelet-1.21"`},
		`{preset: kubelet-1.22-1.31}`:                               nil,
		`{weibull: {shape: 0.7, scale: 1m}}`:                        nil,
		`{empirical: {values: [0s, 1s, 1s, 2s]}}`:                   nil,
		`{normal: {mean: 0s, stddev: 1s}, exponential: {mean: 0s}}`: {`delay.exponential.mean`, `delay: Forbidden`},
	} {
		var delay Delay
		if err := yaml.UnmarshalStrict([]byte(yamlText), &delay); err != nil {
			t.Fatalf("%s: %v", yamlText, err)
		}
		got := delay.Validate(field.NewPath("delay"))
		if len(got) != len(want) {
			t.Errorf("%s: got %v, want %d errors", yamlText, got, len(want))
			continue
		}
		for i := range want {
			if !strings.HasPrefix(got[i].Error(), want[i]) {
				t.Errorf("%s: got %q, want %q…", yamlText, got[i], want[i])
			}
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if errs := (&Delay{Weibull: &WeibullDelay{x, d(sec)}}).Validate(nil); len(errs) != 1 {
			t.Errorf("shape %v: %v", x, errs)
		}
	}
}

func TestPresetsAreValid(t *testing.T) {
	for _, p := range Presets() {
		if errs := p.delay().Validate(nil); len(errs) > 0 {
			t.Errorf("%s: %v", p, errs)
		}
	}
}

// FuzzDelay decodes arbitrary YAML: what Validate lets pass survives a round trip and never gives a sample outside [0, Longest].
func FuzzDelay(f *testing.F) {
	for _, s := range []string{
		"constant: 1s", "uniform: {min: 0s, max: 1h}", "normal: {mean: 1s, stddev: 9s}", "lognormal: {median: 1ns, sigma: 1e300}",
		"exponential: {mean: 1ns}", "weibull: {shape: 1e-300, scale: 8760h}", "empirical: {values: [1s]}", "preset: kubelet-1.21", "[]", "a: &a [*a]",
	} {
		f.Add(s, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		var delay Delay
		if yaml.UnmarshalStrict([]byte(text), &delay) != nil || len(delay.Validate(nil)) > 0 {
			return
		}
		for _, x := range []time.Duration{delay.Sample(Seed(seed).Stream("c", "o")), delay.Quantile(0), delay.Upper()} {
			if x < 0 || x > Longest {
				t.Fatalf("%s: %v", text, x)
			}
		}
		data, err := json.Marshal(delay)
		if err != nil {
			t.Fatal(err)
		}
		var again Delay
		if err := json.Unmarshal(data, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(delay, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkSample(b *testing.B) {
	r := Seed(1).Stream("bench", "sample")
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				c.delay.Sample(r)
			}
		})
	}
}
