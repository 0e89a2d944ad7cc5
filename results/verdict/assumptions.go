package verdict

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// assumptions checks all assumptions, in the order in which one depends on another.
func (j *judge) assumptions() []Check {
	return []Check{j.allThere(), j.settled(), j.nothingDied(), j.enough("new nodes", results.MetricNewNodes, *j.plan.Assumptions.MinNewNodes),
		j.enough("workload pods", results.MetricPodsCreated, *j.plan.Assumptions.MinPods), j.race(), j.witnessesAgree()}
}

// assumption is the check of an assumption that holds unless something speaks against it.
func assumption(name, want, got string, against []string) Check {
	c := Check{Name: name, Outcome: Passed, Got: got, Want: want, Message: fmt.Sprintf("%s: %s", name, got)}
	if len(against) > 0 {
		c.Outcome, c.Got = Inconclusive, oneLine(shorten(against))
		c.Message = fmt.Sprintf("%s: got %s, want %s", name, c.Got, want)
	}
	return c
}

// waived is the check of an assumption that is not made.
func waived(name, why string) Check {
	return Check{Name: name, Waived: why, Message: fmt.Sprintf("%s: not checked, %s", name, why)}
}

// maxReasons bounds the list in one check: an experiment may have thousands of runs.
const maxReasons = 5

func shorten(reasons []string) string {
	if more := len(reasons) - maxReasons; more > 0 {
		reasons = append(slices.Clone(reasons[:maxReasons]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(reasons, "; ")
}

// all is the number of the runs that are there.
func (j *judge) all() string {
	n := 0
	for i := range j.summary.Arms {
		n += len(j.summary.Arms[i].Runs)
	}
	return count(n, "run")
}

// runs calls look for every run that is there, and gathers what it has against them. Look returns an empty string if that is nothing.
func (j *judge) runs(look func(arm *results.Arm, run int) string) (against []string) {
	for i := range j.summary.Arms {
		against = append(against, ofRuns(&j.summary.Arms[i], look)...)
	}
	return against
}

func ofRuns(arm *results.Arm, look func(arm *results.Arm, run int) string) (against []string) {
	for i := range arm.Runs {
		if problem := look(arm, i); problem != "" {
			against = append(against, fmt.Sprintf("%s in %s, seed %d", problem, arm.Name, arm.Runs[i].Seed))
		}
	}
	return against
}

func (j *judge) allThere() Check {
	want := len(j.plan.Arms) * len(j.plan.Seeds)
	there := want
	var missing []string
	for _, arm := range j.plan.Arms {
		for _, seed := range j.missing(arm.Name) {
			missing = append(missing, fmt.Sprintf("%s, seed %d", arm.Name, seed))
			there--
		}
	}
	got := fmt.Sprintf("%d of %s", there, count(want, "run"))
	if len(missing) > 0 {
		missing[0] = got + ": no " + missing[0]
	}
	return assumption("every expected run is there", fmt.Sprintf("%s x %s", count(len(j.plan.Arms), "arm"), count(len(j.plan.Seeds), "seed")), got, missing)
}

func (j *judge) settled() Check {
	return assumption("every run settled", trace.EndSettled, j.all(), j.runs(func(arm *results.Arm, run int) string {
		r := &arm.Runs[run]
		switch {
		case r.Settled:
			return ""
		case r.EndMessage == "":
			return r.End
		}
		return fmt.Sprintf("%s (%s)", r.End, r.EndMessage)
	}))
}

func (j *judge) nothingDied() Check {
	return assumption("no component died", "none", "none in "+j.all(), j.runs(func(arm *results.Arm, run int) string {
		var died []string
		for _, d := range arm.Runs[run].Died {
			died = append(died, fmt.Sprintf("%s after %.0f s (%s)", d.Component, d.At, d.Message))
		}
		return strings.Join(died, ", ")
	}))
}

// enough checks that a metric that counts what took part is at least some number in every run.
func (j *judge) enough(what, metric string, least int) Check {
	fewest := -1
	against := j.runs(func(arm *results.Arm, run int) string {
		n := number(arm, run, metric, "")
		if fewest < 0 || n < fewest {
			fewest = n
		}
		if n < least {
			return fmt.Sprintf("%d", n)
		}
		return ""
	})
	return assumption("enough "+what+" in every run", fmt.Sprintf(">= %d", least), fmt.Sprintf("%d or more", fewest), against)
}

// number is a count of a run; 0 if it has none.
func number(arm *results.Arm, run int, metric, key string) int {
	if f := arm.Figure(metric, key); f != nil && f.Runs[run] != nil {
		return int(f.Runs[run].Value)
	}
	return 0
}

// race checks that the arms to compare with show what the others are to prevent.
func (j *judge) race() Check {
	arms := *j.plan.Assumptions.RaceIn
	name := "the race shows in every run of " + strings.Join(arms, ", ")
	if len(arms) == 0 {
		return waived("the race shows", "assumptions.raceIn is empty")
	}
	var against []string
	fewest := -1
	for _, name := range arms {
		arm := j.arm(name)
		if arm == nil {
			against = append(against, "no run of "+name)
			continue
		}
		against = append(against, ofRuns(arm, func(arm *results.Arm, run int) string {
			hidden := number(arm, run, results.MetricRejectedPodsByCause, string(results.CauseHiddenStaticPod)) +
				number(arm, run, results.MetricRejectedPodsByCause, string(results.CauseMirrorInFlight))
			if fewest < 0 || hidden < fewest {
				fewest = hidden
			}
			if hidden == 0 {
				return "0 pods"
			}
			return ""
		})...)
	}
	return assumption(name, ">= 1 pod rejected for a hidden static pod", fmt.Sprintf("%d or more pods rejected for a hidden static pod", fewest), against)
}

// witnessesAgree checks that no pod was shown as rejected of which its kubelet says nothing: the trace would lack events, or something else failed it.
func (j *judge) witnessesAgree() Check {
	const name = "kubelets and API agree about rejections"
	measured := false
	against := j.runs(func(arm *results.Arm, run int) string {
		if f := arm.Figure(results.MetricNotSeenByKubelet, ""); f == nil || f.Runs[run] == nil {
			return ""
		}
		measured = true
		if n := number(arm, run, results.MetricNotSeenByKubelet, ""); n > 0 {
			return count(n, "pod")
		}
		return ""
	})
	if !measured {
		return waived(name, "the traces have no events of kubelets")
	}
	return assumption(name, "0 pods rejected by the API's word alone", "0 pods rejected by the API's word alone", against)
}
