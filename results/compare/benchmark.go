package compare

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/perf/benchfmt"

	"github.com/mirrorgap/mirrorgap/results"
)

// WriteBenchmark writes the runs that may be judged in the Go benchmark format (golang.org/design/14313-benchmark-format): a line a run, with the complete
// figures in units of the metrics' names, which also say the unit; before it, where it differs from the last one, what was run as configuration. benchstat
// reads it, and compares files of this kind. Whether less of something is better is not said: that depends on what is asked.
func WriteBenchmark(w io.Writer, s *results.Summary) error {
	out := benchfmt.NewWriter(w)
	for i := range s.Arms {
		arm := &s.Arms[i]
		for run := range arm.Runs {
			values := measurements(arm, run)
			if !arm.Runs[run].Conclusive || len(values) == 0 { // a line without values is no benchmark
				continue
			}
			name := benchfmt.Name("Mirrorgap/arm=" + word(arm.Name))
			if err := out.Write(&benchfmt.Result{Config: configuration(s.Experiment, &arm.Runs[run]), Name: name, Iters: 1, Values: values}); err != nil {
				return fmt.Errorf("write benchmark file: %w", err)
			}
		}
	}
	return nil
}

// configuration is what was run, in order of the keys. goos, goarch and cpu are the keys of go test.
func configuration(experiment string, run *results.RunInfo) []benchfmt.Config {
	values := map[string]string{
		"experiment": experiment, "engine": run.Engine, "goos": run.Machine.OS, "goarch": run.Machine.Arch, "cpu": run.Machine.CPUModel,
	}
	maps.Copy(values, run.Versions)
	var config []benchfmt.Config
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if value := strings.Join(strings.Fields(values[key]), " "); value != "" {
			config = append(config, benchfmt.Config{Key: word(strings.ToLower(key)), Value: []byte(value), File: true})
		}
	}
	return config
}

// measurements are the complete figures of a run.
func measurements(arm *results.Arm, run int) []benchfmt.Value {
	var values []benchfmt.Value
	for i := range arm.Figures {
		f := &arm.Figures[i]
		if o := f.Runs[run]; whole(o) {
			unit := f.Name
			if f.Key != "" {
				unit += "/" + f.Key
			}
			values = append(values, benchfmt.Value{Value: o.Value, Unit: word(unit)})
		}
	}
	return values
}

// word makes of a name one word, as the format wants it.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == ':' {
			return '_'
		}
		return r
	}, s)
}
