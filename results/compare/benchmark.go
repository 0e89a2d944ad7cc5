package compare

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
)

// WriteBenchmark writes runs in the Go benchmark format (golang.org/design/14313-benchmark-format): what was run as configuration, then a line a run, with
// the complete figures in units of the metrics' names, which also say the unit. benchstat reads it, and compares files of this kind.
func WriteBenchmark(w io.Writer, s *results.Summary) error {
	var out strings.Builder
	first := s.Arms[0].Runs[0]
	config := map[string]string{"experiment": s.Experiment, "engine": first.Engine, "goos": first.Machine.OS, "goarch": first.Machine.Arch, "cpu": first.Machine.CPUModel}
	maps.Copy(config, first.Versions)
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if value := strings.Join(strings.Fields(config[key]), " "); value != "" {
			fmt.Fprintf(&out, "%s: %s\n", word(strings.ToLower(key)), value)
		}
	}
	for i := range s.Arms {
		arm := &s.Arms[i]
		for run := range arm.Runs {
			if line := measurements(arm, run); line != "" {
				fmt.Fprintf(&out, "BenchmarkMirrorgap/arm=%s 1%s\n", word(arm.Name), line)
			}
		}
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("write benchmark file: %w", err)
	}
	return nil
}

// measurements are the complete figures of a run.
func measurements(arm *results.Arm, run int) string {
	var out strings.Builder
	for i := range arm.Figures {
		f := &arm.Figures[i]
		if o := f.Runs[run]; whole(o) {
			unit := f.Name
			if f.Key != "" {
				unit += "/" + f.Key
			}
			fmt.Fprintf(&out, " %s %s", strconv.FormatFloat(o.Value, 'g', -1, 64), word(unit))
		}
	}
	return out.String()
}

// word makes of a name one word, as the format wants it.
func word(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || r == ':' {
			return '_'
		}
		return r
	}, s)
}
