package sweep

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
)

// The names of the files that Write makes, besides the plots.
const (
	JSONFile  = "sweep.json"
	CSVFile   = "sweep.csv"
	TableFile = "sweep.txt"
	HTMLFile  = "sweep.html"
)

// Write writes the sweep into dir, which must exist: as JSON, CSV, table, a page, and a file for each plot. Each file is written whole or not at all; an
// error names the file.
func (s *Sweep) Write(dir string) error {
	plots, err := s.Plots()
	if err != nil {
		return err
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{JSONFile, func(w io.Writer) error { return results.WriteJSON(w, s) }},
		{CSVFile, s.CSV},
		{TableFile, s.Table},
		{HTMLFile, func(w io.Writer) error { return s.html(w, plots) }},
	} {
		if err := results.ReplaceFile(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	for _, p := range plots {
		err := results.ReplaceFile(filepath.Join(dir, p.File), func(w io.Writer) error {
			_, err := w.Write(p.document)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// CSV writes a line for each metric of each arm of each case. An empty cell was not measured, or has too few runs.
func (s *Sweep) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	header := []string{"folder"}
	for _, p := range s.Parameters {
		header = append(header, p.Name)
	}
	header = append(header, "arm", "metric", "key", "unit", "runs", "n", "censored", "median", "medianLow95", "medianHigh95", "min", "max")
	if err := out.Write(header); err != nil {
		return err
	}
	for c, arm := range s.arms {
		for i := range arm.Figures {
			f := &arm.Figures[i]
			line := append([]string{c.Folder}, c.Labels...)
			line = append(line, arm.Name, f.Name, f.Key, f.Unit, strconv.Itoa(len(arm.Runs)))
			if err := out.Write(append(line, f.cells()...)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// cells are n, censored, median, its interval, minimum and maximum. The least and the largest are those of complete figures, as the median is.
func (f *Figure) cells() []string {
	d := &f.OverSeeds
	cells := []string{strconv.Itoa(d.N), strconv.Itoa(d.Censored), number(d.Median)}
	if d.Estimates != nil && d.Estimates.Median.Interval != nil {
		cells = append(cells, number(&d.Estimates.Median.Interval.Low), number(&d.Estimates.Median.Interval.High))
	} else {
		cells = append(cells, "", "")
	}
	return append(cells, number(f.least()), number(d.Max))
}

// least is the least complete figure; nil if there is none.
func (f *Figure) least() *float64 {
	var least *float64
	for _, o := range f.Runs {
		if o != nil && !o.Censored && (least == nil || o.Value < *least) {
			least = &o.Value
		}
	}
	return least
}

func number(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', -1, 64)
}

// title is the name of a metric, and its unit where neither the name nor a figure says it.
func title(m results.Metric) string {
	if (m.Unit == "pods" || m.Unit == "nodes") && !strings.HasSuffix(strings.ToLower(m.Name), m.Unit) {
		return m.Name + ", " + m.Unit
	}
	return m.Name
}
