package results

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// The versions of the JSON files. A number changes when a field changes its meaning or goes; new fields may come at any time.
const (
	RunVersion     = "mirrorgap.run/v1"
	SummaryVersion = "mirrorgap.summary/v1"
)

// The names of the files.
const (
	// NodesFile, PodsFile and SummaryFile are written by WriteRun; SummaryFile by WriteSummary too.
	NodesFile   = "nodes.csv"
	PodsFile    = "pods.csv"
	SummaryFile = "summary.json"
	// TableFile is written by WriteSummary.
	TableFile = "summary.txt"
)

// TableWidth is the width of the table in TableFile, in columns.
const TableWidth = 80

// runFile is the summary.json of one run.
type runFile struct {
	Version string `json:"version"`
	// Run is the trace's header.
	Run trace.Header `json:"run"`
	RunInfo
	Figures []runFigure `json:"metrics"`
}

// runFigure is a metric of one run.
type runFigure struct {
	Metric
	// Run is the run's own figure, absent if it has none; OverNodes describes its new nodes, OverPods its workload pods.
	Run       *Observation  `json:"run,omitempty"`
	OverNodes *Distribution `json:"overNodes,omitempty"`
	OverPods  *Distribution `json:"overPods,omitempty"`
}

// WriteRun writes NodesFile, PodsFile and SummaryFile of one run into dir, which must exist, and returns what to keep of the run. Each file is
// written whole or not at all; an error names the file.
func WriteRun(dir string, r *Run) (*Digest, error) {
	if err := writeCSV(filepath.Join(dir, NodesFile), nodeColumns, r.Nodes); err != nil {
		return nil, err
	}
	if err := writeCSV(filepath.Join(dir, PodsFile), podColumns, r.Pods); err != nil {
		return nil, err
	}
	digest := r.Digest()
	file := runFile{Version: RunVersion, Run: r.Header, RunInfo: digest.RunInfo}
	for _, m := range metricsOf([]*Digest{digest}) {
		f := m.over([]*Digest{digest})
		file.Figures = append(file.Figures, runFigure{Metric: m, Run: f.Runs[0], OverNodes: f.OverNodes, OverPods: f.OverPods})
	}
	return digest, WriteJSONFile(filepath.Join(dir, SummaryFile), file)
}

// WriteSummary writes SummaryFile and TableFile into dir, which must exist. Each file is written whole or not at all; an error names the file.
func WriteSummary(dir string, s *Summary) error {
	if err := WriteJSONFile(filepath.Join(dir, SummaryFile), s); err != nil {
		return err
	}
	return ReplaceFile(filepath.Join(dir, TableFile), func(w io.Writer) error { return Table(w, s, TableWidth) })
}

// WriteJSONFile writes a value as indented JSON, whole or not at all. An error names the file.
func WriteJSONFile(path string, value any) error {
	return ReplaceFile(path, func(w io.Writer) error { return WriteJSON(w, value) })
}

// WriteJSON writes a value as indented JSON.
func WriteJSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(value)
}

// column is one column of a CSV file.
type column[Row any] struct {
	name string
	cell func(Row) string
}

func writeCSV[Row any](path string, columns []column[Row], rows []Row) error {
	return ReplaceFile(path, func(w io.Writer) error {
		out := csv.NewWriter(w)
		cells := make([]string, len(columns))
		for i, c := range columns {
			cells[i] = c.name
		}
		if err := out.Write(cells); err != nil {
			return err
		}
		for _, row := range rows {
			for i, c := range columns {
				cells[i] = c.cell(row)
			}
			if err := out.Write(cells); err != nil {
				return err
			}
		}
		out.Flush()
		return out.Error()
	})
}

// nodeColumns are those of NodesFile. Instants are seconds since the start of the trace; an empty cell is "did not happen" or "not known".
var nodeColumns = []column[*Node]{
	{"node", func(n *Node) string { return n.Name }},
	{"uid", func(n *Node) string { return n.UID }},
	{"group", func(n *Node) string { return n.Group }},
	{"initial", func(n *Node) string { return strconv.FormatBool(n.Initial) }},
	{"allocatableCPUMillicores", func(n *Node) string { return amount(n.Allocatable, "cpu") }},
	{"allocatableMemoryBytes", func(n *Node) string { return amount(n.Allocatable, "memory") }},
	{"allocatablePods", func(n *Node) string { return amount(n.Allocatable, podsResource) }},
	{"registeredSeconds", func(n *Node) string { return seconds(&n.Registered) }},
	{"readySeconds", func(n *Node) string { return seconds(n.Ready) }},
	{"schedulableSeconds", func(n *Node) string { return seconds(n.Schedulable) }},
	{"mirrorsVisibleSeconds", func(n *Node) string { return seconds(n.MirrorsVisible) }},
	{"conditionTrueSeconds", func(n *Node) string { return seconds(n.ConditionTrue) }},
	{"releasedSeconds", func(n *Node) string { return seconds(n.Released) }},
	{"firstBindSeconds", func(n *Node) string { return seconds(n.FirstBind) }},
	{"goneSeconds", func(n *Node) string { return seconds(n.Gone) }},
	{"exposureSeconds", func(n *Node) string { return length(n.Exposure) }},
	{"exposureCensored", func(n *Node) string { return censored(n.Exposure) }},
	{"holdSeconds", func(n *Node) string { return length(n.holdPart(func(h *Hold) *Span { return &h.Total })) }},
	{"holdCensored", func(n *Node) string { return censored(n.holdPart(func(h *Hold) *Span { return &h.Total })) }},
	{"holdBeyondReadySeconds", func(n *Node) string { return length(n.holdPart(func(h *Hold) *Span { return h.BeyondReady })) }},
	{"holdMirrorsSeconds", func(n *Node) string { return length(n.holdPart(func(h *Hold) *Span { return h.Mirrors })) }},
	{"holdCheckerSeconds", func(n *Node) string { return length(n.holdPart(func(h *Hold) *Span { return h.Checker })) }},
	{"holdControllerSeconds", func(n *Node) string { return length(n.holdPart(func(h *Hold) *Span { return h.Controller })) }},
	{"schedulerUseSeconds", func(n *Node) string { return length(n.holdPart(func(h *Hold) *Span { return h.Scheduler })) }},
	{"holdOutOfOrder", func(n *Node) string {
		if n.Hold == nil {
			return ""
		}
		return strconv.FormatBool(n.Hold.OutOfOrder)
	}},
	{"staticPods", func(n *Node) string { return strconv.Itoa(n.StaticPods) }},
	{"boundPods", func(n *Node) string { return strconv.Itoa(n.Bound) }},
	{"rejectedPods", func(n *Node) string { return strconv.Itoa(n.Rejected) }},
	{"firstWavePods", func(n *Node) string { return strconv.Itoa(n.FirstWave.Bound) }},
	{"firstWaveRejections", func(n *Node) string { return strconv.Itoa(n.FirstWave.Rejected) }},
	{"firstWaveHiddenRejections", func(n *Node) string { return strconv.Itoa(n.FirstWave.HiddenRejected) }},
	{"closedFormBound", closedForm(func(c *ClosedForm) int { return c.Bound })},
	{"closedFormAdmitted", closedForm(func(c *ClosedForm) int { return c.Admitted })},
	{"closedFormRejections", closedForm((*ClosedForm).Rejected)},
	{"closedFormNotApplicable", func(n *Node) string { return n.FirstWave.NotApplicable }},
}

// podColumns are those of PodsFile. Instants are seconds since the start of the trace; an empty cell is "did not happen".
var podColumns = []column[*Pod]{
	{"pod", func(p *Pod) string { return p.Name }},
	{"uid", func(p *Pod) string { return p.UID }},
	{"role", func(p *Pod) string { return string(p.Role) }},
	{"workload", func(p *Pod) string { return p.Workload }},
	{"owner", func(p *Pod) string { return p.Owner }},
	{"node", func(p *Pod) string { return p.Node }},
	{"nodeUID", func(p *Pod) string { return p.NodeUID }},
	{"pinned", func(p *Pod) string { return strconv.FormatBool(p.Pinned) }},
	{"requestedCPUMillicores", func(p *Pod) string { return amount(p.Requests, "cpu") }},
	{"requestedMemoryBytes", func(p *Pod) string { return amount(p.Requests, "memory") }},
	{"createdSeconds", func(p *Pod) string { return seconds(p.Created) }},
	{"boundSeconds", func(p *Pod) string { return seconds(p.Bound) }},
	{"runningSeconds", func(p *Pod) string { return seconds(p.Running) }},
	{"endedSeconds", func(p *Pod) string { return seconds(p.Ended) }},
	{"deletedSeconds", func(p *Pod) string { return seconds(p.Deleted) }},
	{"state", func(p *Pod) string { return string(p.State) }},
	{"rejectedSeconds", rejected(func(r *Rejection) string { return seconds(&r.At) })},
	{"reason", rejected(func(r *Rejection) string { return r.Reason })},
	{"cause", rejected(func(r *Rejection) string { return string(r.Cause) })},
	{"firstWave", rejected(func(r *Rejection) string { return strconv.FormatBool(r.FirstWave) })},
	{"seenByKubelet", rejected(func(r *Rejection) string { return strconv.FormatBool(r.SeenByKubelet) })},
	{"seenByAPI", rejected(func(r *Rejection) string { return strconv.FormatBool(r.SeenByAPI) })},
}

func rejected(cell func(*Rejection) string) func(*Pod) string {
	return func(p *Pod) string {
		if p.Rejection == nil {
			return ""
		}
		return cell(p.Rejection)
	}
}

func closedForm(number func(*ClosedForm) int) func(*Node) string {
	return func(n *Node) string {
		if n.FirstWave.ClosedForm == nil {
			return ""
		}
		return strconv.Itoa(number(n.FirstWave.ClosedForm))
	}
}

func amount(r trace.Resources, name string) string {
	if a, ok := r[name]; ok {
		return strconv.FormatInt(a, 10)
	}
	return ""
}

// seconds writes an instant or a length to the microsecond, which is finer than any clock here is meaningful.
func seconds(d *time.Duration) string {
	if d == nil {
		return ""
	}
	return strconv.FormatFloat(d.Seconds(), 'f', 6, 64)
}

func length(s *Span) string {
	if s == nil {
		return ""
	}
	return seconds(&s.Duration)
}

func censored(s *Span) string {
	if s == nil {
		return ""
	}
	return strconv.FormatBool(s.Censored)
}

// ReplaceFile writes a file so that a crash, or a full disk, leaves either the old one or the new one: into a temporary file beside it, which is
// then renamed. An error names the file.
func ReplaceFile(path string, write func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = temp.Close()           // it may be closed already
			_ = os.Remove(temp.Name()) // the first error tells more
		}
	}()
	out := bufio.NewWriter(temp)
	if err := write(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if err := temp.Chmod(0o644); err != nil { // CreateTemp makes it private
		return err
	}
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
