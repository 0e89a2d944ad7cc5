package report

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/compare"
	"github.com/mirrorgap/mirrorgap/results/verdict"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The names of the files, besides those of packages results and verdict.
const (
	HTMLFile     = "report.html"
	MarkdownFile = "report.md"
	FiguresFile  = "figures.csv"
	SeriesFile   = "series.csv"
	// BenchmarkFile is for benchstat.
	BenchmarkFile = "benchmark.txt"
)

// Source is what a report says about its runs that their traces do not. All of it may be empty.
type Source struct {
	// Experiment is the experiment file as it was run, Description what it says about itself, Settings those of the scheduler, the other components and the
	// kubelet model, as YAML.
	Experiment, Description, Settings string
	// ModelGroups are the node groups whose kubelets are modelled, RealGroups those whose kubelets are real. If both are empty all are modelled.
	ModelGroups, RealGroups []string
	// Arms and Seeds make up the runs that the experiment was to have: every arm with every seed.
	Arms  []string
	Seeds []uint64
	// Plan is what to judge the runs by; nil if the experiment has no thresholds.
	Plan *verdict.Plan
}

// Report is what is to be told about the runs of a results folder.
type Report struct {
	Source
	Summary *results.Summary
	// Verdict is nil without a plan.
	Verdict *verdict.Verdict
	// shown are the runs that stand for their arms in the plots over time, in the order of Summary.Arms.
	shown []*shownRun
}

// shownRun is what is kept of the first run of an arm.
type shownRun struct {
	header trace.Header
	series []results.Series
	// others are the series of the arm's other runs, each counting from its own zero as series does.
	others [][]results.Series
	// zero is when the scale-up began, or 0; scaled whether there was one. wall is the length of the trace. All in seconds.
	zero, wall float64
	scaled     bool
	rows       []nodeRow
	// newNodes is how many there are to choose rows from.
	newNodes int
}

// nodeRow is a node of the timeline, with the instants at which it rejected pods.
type nodeRow struct {
	*results.Node
	rejections []float64
}

// maxRows bounds the rows of a timeline; more are neither read nor printed by anybody.
const maxRows = 60

// Build reads the runs of a folder. Its error is as results.ReadTrace's and verdict.Judge's.
func Build(folder *results.Folder, source Source) (*Report, error) {
	r := &Report{Source: source}
	var digests []*results.Digest
	shown := map[string]*shownRun{}
	for run, err := range folder.Runs() {
		if err != nil {
			return nil, err
		}
		digests = append(digests, run.Digest())
		if first := shown[run.Header.Arm]; first != nil {
			first.others = append(first.others, sinceScaleUp(run))
			continue
		}
		shown[run.Header.Arm] = show(run)
	}
	summary, err := results.Summarize(digests)
	if err != nil {
		return nil, &results.InputError{Err: err}
	}
	r.Summary = summary
	for i := range summary.Arms {
		r.shown = append(r.shown, shown[summary.Arms[i].Name])
	}
	if source.Plan != nil {
		if r.Verdict, err = verdict.Judge(summary, *source.Plan); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func show(run *results.Run) *shownRun {
	start, scaled := run.Phases[trace.PhaseScaleUp]
	s := &shownRun{header: run.Header, series: sinceScaleUp(run), zero: start.Seconds(), scaled: scaled, wall: run.Wall.Seconds()}
	var fresh []*results.Node
	for _, n := range run.Nodes {
		if !n.Initial {
			fresh = append(fresh, n)
		}
	}
	s.newNodes = len(fresh)
	at := map[string]int{}
	for i, n := range choose(fresh) {
		s.rows = append(s.rows, nodeRow{Node: n})
		at[n.UID] = i
	}
	for _, p := range run.Pods {
		if i, chosen := at[p.NodeUID]; chosen && p.Rejection != nil {
			s.rows[i].rejections = append(s.rows[i].rejections, p.Rejection.At.Seconds())
		}
	}
	for _, row := range s.rows {
		slices.Sort(row.rejections)
	}
	return s
}

// sinceScaleUp are the series of a run, counted from its scale-up: what came before it takes longer in one run than in another.
func sinceScaleUp(run *results.Run) []results.Series {
	zero := run.Phases[trace.PhaseScaleUp].Seconds()
	all := slices.Clone(run.Series)
	for i := range all {
		all[i].Points = slices.Clone(all[i].Points)
		for j := range all[i].Points {
			all[i].Points[j].At -= zero
		}
	}
	return all
}

// extremes rank the nodes that a timeline shows in any case: the highest of each.
var extremes = []func(*results.Node) float64{
	func(n *results.Node) float64 { return float64(n.Rejected) },
	func(n *results.Node) float64 { return length(n.Exposure) },
	func(n *results.Node) float64 {
		if n.Hold == nil {
			return 0
		}
		return length(&n.Hold.Total)
	},
	func(n *results.Node) float64 { return one(n.Schedulable == nil) },
	func(n *results.Node) float64 { return one(n.Hold != nil && n.Hold.OutOfOrder) },
}

// chosenHow says how choose picks nodes.
const chosenHow = "evenly chosen in order of registration, and where there is one, the node with most rejections, the longest exposure, the longest hold, " +
	"one that never was schedulable, and one with its steps out of order"

func length(s *results.Span) float64 {
	if s == nil {
		return 0
	}
	return s.Duration.Seconds()
}

func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// choose picks at most maxRows nodes, as chosenHow says.
func choose(nodes []*results.Node) []*results.Node {
	if len(nodes) <= maxRows {
		return nodes
	}
	picked := map[*results.Node]bool{}
	for _, rank := range extremes {
		if n := slices.MaxFunc(nodes, func(a, b *results.Node) int { return cmp.Compare(rank(a), rank(b)) }); rank(n) > 0 {
			picked[n] = true
		}
	}
	var chosen []*results.Node
	even := maxRows - len(extremes)
	for i, n := range nodes {
		if i == 0 || i*even/len(nodes) != (i-1)*even/len(nodes) || picked[n] {
			chosen = append(chosen, n)
		}
	}
	return chosen
}

// Write writes all files of the report into dir, which must exist. Each is written whole or not at all; an error names the file.
func (r *Report) Write(dir string) error {
	files := []struct {
		name  string
		write func(io.Writer) error
	}{{FiguresFile, r.writeFigures}, {SeriesFile, r.writeSeries},
		{BenchmarkFile, func(w io.Writer) error { return compare.WriteBenchmark(w, r.Summary) }}, {MarkdownFile, r.Markdown}, {HTMLFile, r.HTML}}
	if r.Verdict != nil {
		files = append(files, []struct {
			name  string
			write func(io.Writer) error
		}{
			{verdict.File, func(w io.Writer) error { return results.WriteJSON(w, r.Verdict) }},
			{verdict.JUnitFile, func(w io.Writer) error { return verdict.WriteJUnit(w, r.Verdict, r.Summary) }},
		}...)
	}
	if err := results.WriteSummary(dir, r.Summary); err != nil {
		return err
	}
	for _, f := range files {
		if err := results.ReplaceFile(filepath.Join(dir, f.name), f.write); err != nil {
			return err
		}
	}
	return nil
}
