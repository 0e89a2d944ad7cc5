package agreement

import (
	_ "embed" // the templates
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	texttemplate "text/template"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/page"
	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// The names of the files that Write makes.
const (
	JSONFile     = "agreement.json"
	MarkdownFile = "agreement.md"
	HTMLFile     = "agreement.html"
	// CSVFile has every value of every delay.
	CSVFile = "agreement.csv"
)

//go:embed agreement.md.tmpl
var markdownTemplate string

//go:embed agreement.html.tmpl
var htmlTemplate string

// Write writes the report into dir, which must exist. Each file is written whole or not at all; an error names the file.
func (r *Report) Write(dir string) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{JSONFile, func(w io.Writer) error { return results.WriteJSON(w, r) }},
		{MarkdownFile, r.Markdown},
		{HTMLFile, r.html},
		{CSVFile, r.csv},
	} {
		if err := results.ReplaceFile(filepath.Join(dir, file.name), file.write); err != nil {
			return err
		}
	}
	return nil
}

// view is what the templates are made of.
type view struct{ *Report }

// Legend explains the tables.
func (view) Legend() string { return legend }

// Word says how a part came out.
func (view) Word(o verdict.Outcome) string { return word(o) }

// Share writes a distance or a probability.
func (view) Share(x *float64) string { return share(x) }

// AdmissionOutcome is that of the admission test, also if there was none.
func (v view) AdmissionOutcome() verdict.Outcome { return outcomeOf(v.Admission) }

// Seeds are those of the runs.
func (v view) Seeds() string {
	var all []string
	for _, run := range v.Timing.Runs {
		all = append(all, strconv.FormatUint(run.Seed, 10))
	}
	return strings.Join(all, ", ")
}

// StormRows are the storms of the runs, in words: seed, seconds, model, real kubelet.
func (v view) StormRows() [][]string {
	var rows [][]string
	for i, r := range v.Timing.Storm.Runs {
		row := []string{strconv.FormatUint(v.Timing.Runs[i].Seed, 10), absent, absent, absent, absent}
		if r != nil {
			row = []string{row[0], fmt.Sprintf("%.0f s", r.Seconds), fmt.Sprintf("%d, %d", r.ModelNodes, r.RealNodes),
				results.Quantity(r.Model, "1/s"), results.Quantity(r.Real, "1/s")}
		}
		rows = append(rows, row)
	}
	return rows
}

// VersionList is what it was made with, in words.
func (v view) VersionList() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(v.Versions)) {
		all = append(all, name+" "+v.Versions[name])
	}
	return strings.Join(all, ", ")
}

// Markdown writes the report as text for people.
func (r *Report) Markdown(w io.Writer) error {
	t, err := texttemplate.New("agreement").Funcs(texttemplate.FuncMap{"cell": cell}).Parse(markdownTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the agreement report: %w", err)
	}
	return t.Execute(w, view{r})
}

// cell keeps what comes from files of others from being markup in a table.
func cell(s string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|", "<", "&lt;", "`", "'", "*", "\\*", "_", "\\_").Replace(s)
}

// html writes the report as a page that stands by itself.
func (r *Report) html(w io.Writer) error {
	t, err := template.New("agreement").Parse(htmlTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the agreement report: %w", err)
	}
	var body strings.Builder
	if err := t.Execute(&body, view{r}); err != nil {
		return fmt.Errorf("make agreement report: %w", err)
	}
	return page.Page{Title: "mirrorgap: kubelet model and real kubelet", Body: template.HTML(body.String())}.Write(w) //nolint:gosec // html/template has made it
}

// csv writes a line for each value of each delay, in seconds.
func (r *Report) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"delay", "staticPod", "kubelet", "seed", "node", "seconds"}) // Error has it
	if r.Timing != nil {
		for i := range r.Timing.Delays {
			d := &r.Timing.Delays[i]
			for side, name := range sides {
				for run, nodes := range d.values[side].runs {
					seed := strconv.FormatUint(r.Timing.Runs[run].Seed, 10)
					for n, values := range nodes {
						for _, x := range values {
							_ = out.Write([]string{d.Name, d.StaticPod, name, seed, d.values[side].names[run][n], strconv.FormatFloat(x, 'f', 6, 64)})
						}
					}
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}
