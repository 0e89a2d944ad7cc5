package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/results/agreement"
	"github.com/mirrorgap/mirrorgap/results/plot"
	"github.com/mirrorgap/mirrorgap/results/stats"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// view is a Report as the templates see it.
type view struct{ *Report }

// engineCluster is the engine of a recording: the only one whose nodes are real.
const engineCluster = "cluster"

// Header is that of the first run.
func (v view) Header() trace.Header { return v.shown[0].header }

// Recorded tells whether the trace is of a cluster that was only watched.
func (v view) Recorded() bool { return v.Header().Engine == engineCluster }

// Gated tells whether any arm has a readiness gate.
func (v view) Gated() bool {
	return slices.ContainsFunc(v.Summary.Arms, func(a results.Arm) bool { return a.Gate != nil })
}

// runs lists all runs, by arm.
func (v view) runs(look func(arm *results.Arm, run *results.RunInfo)) {
	for i := range v.Summary.Arms {
		for j := range v.Summary.Arms[i].Runs {
			look(&v.Summary.Arms[i], &v.Summary.Arms[i].Runs[j])
		}
	}
}

// distinct is what the runs say, each answer once.
func (v view) distinct(say func(*results.RunInfo) string) string {
	var all []string
	v.runs(func(_ *results.Arm, run *results.RunInfo) {
		if text := say(run); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	})
	return strings.Join(all, "; ")
}

// Doubts are why the figures are no result: runs that may not be judged, and those that are not there.
func (v view) Doubts() []string {
	var all []string
	there := map[string]bool{}
	v.runs(func(arm *results.Arm, run *results.RunInfo) {
		there[runName(arm.Name, run.Seed)] = true
		if !run.Conclusive {
			all = append(all, fmt.Sprintf("%s ended as %s.", runName(arm.Name, run.Seed), ended(run)))
		}
	})
	var missing []string
	for _, arm := range v.Arms {
		for _, seed := range v.Seeds {
			if run := runName(arm, seed); !there[run] {
				missing = append(missing, run)
			}
		}
	}
	if len(missing) > 0 {
		all = append(all, fmt.Sprintf("%d of the experiment's %d runs are not there: %s.", len(missing), len(v.Arms)*len(v.Seeds), strings.Join(missing, "; ")))
	}
	return all
}

func runName(arm string, seed uint64) string { return fmt.Sprintf("%s, seed %d", arm, seed) }

// ended says how a run ended, and why.
func ended(run *results.RunInfo) string {
	text := run.End
	if run.EndMessage != "" {
		text += " (" + run.EndMessage + ")"
	}
	for _, death := range run.Died {
		text += ", " + death.Component + " died"
	}
	return text
}

// Notes are what a reader must know before believing the answer, besides Doubts.
func (v view) Notes() []string {
	var all []string
	for i := range v.Summary.Arms {
		arm := &v.Summary.Arms[i]
		if rate := arm.NoneRejected(); rate != nil {
			over := stats.Proportion(0, len(arm.Runs))
			all = append(all, fmt.Sprintf("%s: the bound of %s takes %s new nodes to be independent of one another, which they are not entirely. Counted in runs, "+
				"it is 0 of %d: at most %s.", arm.Name, share(rate.Interval.High), whole(rate.N), over.N, share(over.Interval.High)))
		}
	}
	for _, w := range v.Summary.Warnings {
		if w.Code != results.WarnInconclusive {
			all = append(all, w.Message+".")
		}
	}
	return all
}

// whole writes a number of things.
func whole(n int) string { return results.Quantity(float64(n), "") }

func share(x float64) string { return results.Quantity(100*x, "") + " %" }

// Byline says in one line what the answer is about.
func (v view) Byline() string {
	kubernetes := v.version("kubernetes")
	if kubernetes == "" {
		kubernetes = "of unknown version"
	}
	text := "Simulated nodes and kubelets, under the real control plane of Kubernetes " + kubernetes
	if len(v.RealGroups) > 0 {
		text = "Simulated nodes with real kubelets, under the real control plane of Kubernetes " + kubernetes
	}
	if len(v.RealGroups) > 0 && v.Modelled() {
		text = "Simulated nodes with real and with modelled kubelets, under the real control plane of Kubernetes " + kubernetes
	}
	if v.Recorded() {
		text = "Recorded from a cluster of Kubernetes " + kubernetes + " through its API"
	}
	return text + ", " + v.Header().Start.Format("2 January 2006") + "."
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
		caption := fmt.Sprintf("every new node (%s), in order of registration.", whole(run.newNodes))
		if len(run.rows) < run.newNodes {
			caption = fmt.Sprintf("%d of %s new nodes, %s.", len(run.rows), whole(run.newNodes), chosenHow)
		}
		all = append(all, Figure{runName(run.header.Arm, run.header.Seed) + ": " + caption, func() ([]byte, error) { return v.timeline(run) }})
	}
	return all
}

// band says what the band of a plot over time is, if there is one.
func (v view) band() string {
	if !slices.ContainsFunc(v.shown, func(s *shownRun) bool { return len(s.others) > 0 }) {
		return ""
	}
	return " The band goes from the lowest to the highest of all runs of the arm; it is no confidence interval."
}

// Rejections shows the rejected pods over time.
func (v view) Rejections() Figure {
	witness := "Pods that kubelets rejected so far."
	if v.Recorded() {
		witness = "Pods that the API showed as rejected so far."
	}
	return Figure{
		Caption: witness + v.band() + " † How fast the number grows depends on the speed of the machine and of the loop of controller, scheduler and kubelet.",
		draw: func() ([]byte, error) {
			return v.overTime(plot.Options{Title: "pods rejected so far, by arm", YLabel: "pods"},
				quantity{results.SeriesRejected, 1, true}, func(int) bool { return true })
		},
	}
}

// Overcommit shows how far nodes were overcommitted, over time.
func (v view) Overcommit() Figure {
	return Figure{
		Caption: "Cpu that was placed on nodes (bound, or a static pod's) beyond what each of them has, summed over the nodes where it was: what their " +
			"kubelets cannot admit. † How soon kubelets reject it, and schedulers bind again, depends on the speed of the machine.",
		draw: func() ([]byte, error) {
			return v.overTime(plot.Options{Title: "cpu placed on nodes beyond their allocatable, by arm", YLabel: "cores", Empty: "no mirror pod was seen"},
				quantity{results.SeriesOvercommit, millis, false}, func(arm int) bool { return v.peak(arm) != nil })
		},
	}
}

// peak is the highest overcommit of the run that stands for the arm; nil if it is not known.
func (v view) peak(arm int) *results.Observation {
	a := &v.Summary.Arms[arm]
	i := slices.IndexFunc(a.Runs, func(run results.RunInfo) bool { return run.Seed == v.shown[arm].header.Seed })
	return a.Figure(results.MetricPeakOvercommit, "").Runs[i]
}

// Views are what the scheduler saw of each arm, beside what was on the nodes.
func (v view) Views() []Figure {
	var all []Figure
	for i, run := range v.shown {
		caption := runName(run.header.Arm, run.header.Seed) + "."
		switch peak := v.peak(i); {
		case peak == nil:
		case peak.Value == 0:
			caption += " No node had more placed on it than it has."
		default:
			caption += fmt.Sprintf(" At most %s at one time were placed beyond what nodes had, summed over nodes. †", results.Quantity(peak.Value, "mCPU"))
		}
		all = append(all, Figure{caption, run.views})
	}
	return all
}

// Exposure shows the distribution of exposure.
func (v view) Exposure() Figure {
	return Figure{
		Caption: "Exposure: the share of new nodes that were exposed for at most so long. " + v.shareCaption(results.MetricExposure),
		draw: func() ([]byte, error) {
			return v.shares(results.MetricExposure, "exposure", "no new node whose static pods are known became schedulable")
		},
	}
}

// Hold shows the distribution of hold times.
func (v view) Hold() Figure {
	return Figure{
		Caption: "Hold: the share of new nodes from which the gate's taint was gone at most so long after their registration. " + v.shareCaption(results.MetricHold),
		draw:    func() ([]byte, error) { return v.shares(results.MetricHold, "hold", "no new node was held") },
	}
}

func (v view) shareCaption(metric string) string {
	text := "All runs of an arm together. The band is the 95 % interval at each length of time, if nodes were independent of one another."
	for i := range v.Summary.Arms {
		if f := v.Summary.Arms[i].Figure(metric, ""); f != nil && f.OverNodes.Censored > 0 {
			return text + " A tick marks a node that had not come to the end of it when it was last seen; the curve (Kaplan–Meier) takes it into account, " +
				"and stops where nothing more is known."
		}
	}
	return text
}

// Parts shows the parts of the hold.
func (v view) Parts() Figure {
	return Figure{
		Caption: "What the nodes were held for: means over new nodes of all runs, each part over those where it is known and had ended. If that is the same number of " +
			"nodes for the first three, these add up to the mean hold. The last part is not of the hold, but what followed. † The last two depend on the machine.",
		draw: v.parts,
	}
}

// Version is a component and its version.
type Version struct{ Name, Version string }

// version is that of a component, or all of them if runs differ.
func (v view) version(component string) string {
	return v.distinct(func(run *results.RunInfo) string { return run.Versions[component] })
}

// Versions are those of all runs, by name.
func (v view) Versions() []Version {
	names := map[string]bool{}
	v.runs(func(_ *results.Arm, run *results.RunInfo) {
		for name := range run.Versions {
			names[name] = true
		}
	})
	var all []Version
	for _, name := range slices.Sorted(maps.Keys(names)) {
		all = append(all, Version{name, v.version(name)})
	}
	return all
}

// Engine is where the nodes came from.
func (v view) Engine() string {
	return v.distinct(func(run *results.RunInfo) string { return run.Engine })
}

// Machine is where mirrorgap ran; in a simulation everything else did, too.
func (v view) Machine() string {
	return v.distinct(func(run *results.RunInfo) string { return run.Machine.String() })
}

// Runs lists the runs: arm, seeds and how they ended.
func (v view) Runs() []string {
	type group struct{ arm, end string }
	var order []group
	seeds := map[group][]string{}
	v.runs(func(arm *results.Arm, run *results.RunInfo) {
		g := group{arm.Name, ended(run)}
		if seeds[g] == nil {
			order = append(order, g)
		}
		seeds[g] = append(seeds[g], strconv.FormatUint(run.Seed, 10))
	})
	var all []string
	for _, g := range order {
		noun := "seed"
		if len(seeds[g]) > 1 {
			noun = "seeds"
		}
		all = append(all, fmt.Sprintf("%s, %s %s: %s", g.arm, noun, strings.Join(seeds[g], ", "), g.end))
	}
	return all
}

// Modelled tells whether any kubelet of a simulation is modelled.
func (v view) Modelled() bool { return len(v.RealGroups) == 0 || len(v.ModelGroups) > 0 }

// Agreement says how far the kubelet model of this version agreed with the real kubelet.
func (view) Agreement() ([]string, error) {
	committed, err := agreement.Committed()
	if err != nil {
		return nil, err
	}
	return committed.Brief(), nil
}

// AgreementPage is where there is more about it.
func (view) AgreementPage() string { return agreement.Page }

// Real lists the components of a simulation that are what runs in clusters, with their versions.
func (v view) Real() []string {
	as := func(text, component string) string {
		if version := v.version(component); version != "" {
			return text + " " + version
		}
		return text
	}
	all := []string{
		as("etcd", "etcd"),
		"kube-apiserver, kube-scheduler, and of kube-controller-manager the controllers for Deployments, ReplicaSets, DaemonSets, Jobs, node lifecycle, taint " +
			"eviction, pod garbage collection and namespaces: " + as("Kubernetes", "kubernetes"),
		as("KWOK", "kwok"),
	}
	if len(v.RealGroups) > 0 {
		all = append(all, "the kubelets of the node groups "+strings.Join(v.RealGroups, ", ")+", a process for each node, over a container runtime without containers: "+
			as("Kubernetes", "kubernetes"))
	}
	if v.Modelled() {
		all = append(all, "of modelled kubelets the admission handler, the decoder of manifests and the client for mirror pods: "+as("Kubernetes", "kubernetes"))
	}
	if v.Gated() {
		all = append(all, "the readiness controller and the mirror-pod check: "+as("mirrorgap", "mirrorgap"))
	}
	return all
}
