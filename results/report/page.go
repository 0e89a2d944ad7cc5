package report

import (
	_ "embed" // the templates
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	texttemplate "text/template"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/plot"
	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

//go:embed page.html.tmpl
var pageTemplate string

//go:embed report.html.tmpl
var htmlTemplate string

//go:embed report.md.tmpl
var markdownTemplate string

//go:embed style.css
var styleSheet string

// Page is a self-contained HTML page, as all reports look.
type Page struct {
	Title string
	// Body is everything below the title.
	Body template.HTML
}

// CSS is the page's style sheet.
func (Page) CSS() template.CSS { return template.CSS(plot.CSS() + styleSheet) } // both are our own

// Write writes the page. It loads nothing, and its Content-Security-Policy forbids that.
func (p Page) Write(w io.Writer) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("read the template of pages: %w", err)
	}
	return t.Execute(w, p)
}

// HTML writes the report as a page.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Parse(htmlTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the report: %w", err)
	}
	var body strings.Builder
	if err := t.Execute(&body, view{r}); err != nil {
		return fmt.Errorf("make report: %w", err)
	}
	return Page{Title: "mirrorgap: " + r.Summary.Experiment, Body: template.HTML(body.String())}.Write(w) //nolint:gosec // html/template has made it
}

// Markdown writes the report as text to paste into an issue.
func (r *Report) Markdown(w io.Writer) error {
	t, err := texttemplate.New("report").Funcs(texttemplate.FuncMap{"text": markdownText, "cell": markdownCell}).Parse(markdownTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the report: %w", err)
	}
	return t.Execute(w, view{r})
}

// markdownText keeps what comes from files of others from being markup.
func markdownText(s string) string {
	return strings.NewReplacer("\n", " ", "<", "&lt;", "`", "'", "*", "\\*", "_", "\\_", "[", "\\[", "@", "@\u200b").Replace(s)
}

func markdownCell(s string) string {
	return strings.ReplaceAll(markdownText(strings.TrimSpace(s)), "|", "\\|")
}

// svg passes on a plot, which is markup of our own.
func svg(image []byte, err error) (template.HTML, error) {
	return template.HTML(image), err //nolint:gosec // package plot escapes what comes from others
}

// view is a Report as the templates see it.
type view struct{ *Report }

// Judgeable tells whether every run may be judged.
func (v view) Judgeable() bool {
	for i := range v.Summary.Arms {
		for _, run := range v.Summary.Arms[i].Runs {
			if !run.Conclusive {
				return false
			}
		}
	}
	return true
}

// Header is that of the first run.
func (v view) Header() trace.Header { return v.shown[0].header }

// Simulated tells whether the nodes were simulated.
func (v view) Simulated() bool { return v.Header().Engine != "cluster" }

// Gated tells whether any arm has a readiness gate.
func (v view) Gated() bool {
	return slices.ContainsFunc(v.Summary.Arms, func(a results.Arm) bool { return a.Gate != nil })
}

// Figure is a plot with its caption.
type Figure struct {
	Caption string
	draw    func() ([]byte, error)
}

// SVG draws it.
func (f Figure) SVG() (template.HTML, error) { return svg(f.draw()) }

// Timelines are the timelines of the arms.
func (v view) Timelines() []Figure {
	var all []Figure
	for _, run := range v.shown {
		caption := fmt.Sprintf("%s, seed %d: all %d new nodes, one row each.", run.header.Arm, run.header.Seed, run.newNodes)
		if len(run.rows) < run.newNodes {
			caption = fmt.Sprintf("%s, seed %d: %d of %d new nodes, evenly chosen in order of registration, with the one that rejected most pods and the one that was held longest.",
				run.header.Arm, run.header.Seed, len(run.rows), run.newNodes)
		}
		all = append(all, Figure{caption, run.timeline})
	}
	return all
}

// Views are what the scheduler saw of each arm, beside what was on the nodes.
func (v view) Views() []Figure {
	var all []Figure
	for i, run := range v.shown {
		usage := ""
		if f := v.Summary.Arms[i].Figure(results.MetricPeakOvercommit, ""); f != nil {
			if o := f.Runs[0]; o != nil {
				usage = fmt.Sprintf(" At most %s were placed beyond what the nodes had.", results.Quantity(o.Value, f.Unit))
			}
		}
		all = append(all, Figure{fmt.Sprintf("%s, seed %d.%s", run.header.Arm, run.header.Seed, usage), run.views})
	}
	return all
}

// Rejections draws the rejected pods over time.
func (v view) Rejections() (template.HTML, error) { return svg(v.rejections()) }

// Exposure draws the distribution of exposure.
func (v view) Exposure() (template.HTML, error) {
	return svg(v.shares(results.MetricExposure, "exposure", "no new node whose static pods are known became schedulable"))
}

// Hold draws the distribution of hold times.
func (v view) Hold() (template.HTML, error) {
	return svg(v.shares(results.MetricHold, "hold", "no new node was held"))
}

// Parts draws the parts of the hold.
func (v view) Parts() (template.HTML, error) { return svg(v.parts()) }

// Estimate is a line of the table of estimates.
type Estimate struct {
	Arm, Metric, Over, Statistic, Value, Interval, N, Warnings string
	MachineDependent                                           bool
}

// Estimates are the figures that have, or lack, an interval: rates and quantiles.
func (v view) Estimates() []Estimate {
	var all []Estimate
	for _, f := range v.figures() {
		if f.statistic == "mean" || f.statistic == "max" || f.interval == nil && len(f.warnings) == 0 {
			continue
		}
		all = append(all, Estimate{
			Arm: f.arm, Metric: strings.TrimSpace(f.Name + " " + f.Key), Over: f.over, Statistic: f.statistic, Value: f.quantity(f.value),
			Interval: f.bounds(), N: sizes(f.n, f.censored), Warnings: codes(f.warnings), MachineDependent: f.MachineDependent,
		})
	}
	return all
}

// Rates are the estimates of rates only.
func (v view) Rates() []Estimate {
	return slices.DeleteFunc(v.Estimates(), func(e Estimate) bool { return e.Statistic != "rate" })
}

func (f figure) quantity(x *float64) string {
	switch {
	case x == nil:
		return "–"
	case f.statistic == "rate":
		return plot.Number(100**x) + " %"
	}
	return results.Quantity(*x, f.Unit)
}

func (f figure) bounds() string {
	switch {
	case f.interval == nil:
		return "–"
	case f.statistic == "rate" && f.interval.Low == 0:
		return "at most " + f.quantity(&f.interval.High)
	case f.statistic == "rate" && f.interval.High == 1:
		return "at least " + f.quantity(&f.interval.Low)
	}
	return f.quantity(&f.interval.Low) + " to " + f.quantity(&f.interval.High)
}

func sizes(n, censored int) string {
	if censored > 0 {
		return fmt.Sprintf("%d, and %d open", n, censored)
	}
	return fmt.Sprint(n)
}

func codes(warnings []stats.Warning) string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.Code)
	}
	return strings.Join(all, ", ")
}

// WarningMeanings explains the codes of the estimates' warnings, each once.
func (v view) WarningMeanings() []stats.Warning {
	messages := map[string]string{}
	for _, f := range v.figures() {
		for _, w := range f.warnings {
			if _, known := messages[w.Code]; !known {
				messages[w.Code] = w.Message
			}
		}
	}
	var all []stats.Warning
	for _, code := range slices.Sorted(maps.Keys(messages)) {
		all = append(all, stats.Warning{Code: code, Message: messages[code]})
	}
	return all
}

// Comparison is a line of the table of comparisons.
type Comparison struct {
	Arms, Metric, Difference, Interval, P, Effect, N, Verdict string
	MachineDependent                                          bool
}

// Comparisons are those of the metrics in which the arms differ, or could.
func (v view) Comparisons() []Comparison {
	var all []Comparison
	for i := range v.Summary.Comparisons {
		c := &v.Summary.Comparisons[i]
		if c.P == nil && len(c.Difference.Warnings) > 0 && c.Difference.Warnings[len(c.Difference.Warnings)-1].Code == stats.AllEqual {
			continue // nothing differs
		}
		line := Comparison{Arms: c.To + " − " + c.From, Metric: strings.TrimSpace(c.Name + " " + c.Key), Difference: signed(*c.Difference.Value, c.Unit),
			Interval: "–", P: "–", Effect: "–", N: fmt.Sprint(c.Difference.N), Verdict: shown(c.Comparison), MachineDependent: c.MachineDependent}
		if i := c.Difference.Interval; i != nil {
			line.Interval = signed(i.Low, c.Unit) + " to " + signed(i.High, c.Unit)
		}
		if c.P != nil {
			line.P = fmt.Sprintf("%.3g", *c.P)
		}
		if c.Effect != nil {
			line.Effect = fmt.Sprintf("%+.2f", *c.Effect)
		}
		all = append(all, line)
	}
	return all
}

func signed(x float64, unit string) string {
	if x < 0 {
		return "−" + results.Quantity(-x, unit)
	}
	return "+" + results.Quantity(x, unit)
}

func shown(c stats.Comparison) string {
	switch {
	case slices.ContainsFunc(c.Difference.Warnings, func(w stats.Warning) bool { return w.Code == stats.TooFew }):
		return "too few pairs to show anything"
	case c.Shown():
		return "differs"
	}
	return "no difference shown"
}

// Version is a component and its version.
type Version struct{ Name, Version string }

// Versions are those of the first run, by name.
func (v view) Versions() []Version {
	var all []Version
	for _, name := range slices.Sorted(maps.Keys(v.Header().Versions)) {
		all = append(all, Version{name, v.Header().Versions[name]})
	}
	return all
}

// Machine is where the runs took place.
func (v view) Machine() string {
	m := v.Header().Machine
	text := fmt.Sprintf("%s/%s, %d CPUs", m.OS, m.Arch, m.CPUs)
	if m.CPUModel != "" {
		text += " (" + m.CPUModel + ")"
	}
	if m.MemoryBytes > 0 {
		text += fmt.Sprintf(", %.3g GiB", float64(m.MemoryBytes)/(1<<30))
	}
	return text
}

// Runs lists the runs: arm, seed and how it ended.
func (v view) Runs() []string {
	var all []string
	for i := range v.Summary.Arms {
		for _, run := range v.Summary.Arms[i].Runs {
			text := fmt.Sprintf("%s, seed %d: %s", v.Summary.Arms[i].Name, run.Seed, run.End)
			for _, death := range run.Died {
				text += ", " + death.Component + " died"
			}
			all = append(all, text)
		}
	}
	return all
}
