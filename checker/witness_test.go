package checker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/mirrorgap/mirrorgap/checker/manifests"
)

// schedulers is an API server with schedulers that decide about a witness some time after it was created.
type schedulers struct {
	*fake.Clientset
	start time.Time
	// lag is how long each scheduler takes; one that is not there never decides.
	lag map[string]time.Duration
	// bound schedulers bind the pod, others find no room.
	bound map[string]bool
	log   []string
}

func newSchedulers(lag map[string]time.Duration) *schedulers {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: "u0"}}
	s := &schedulers{Clientset: fake.NewSimpleClientset(node), start: time.Now(), lag: lag, bound: map[string]bool{}}
	s.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		pod := a.(ktesting.CreateAction).GetObject().(*corev1.Pod).DeepCopy()
		pod.Name = pod.GenerateName + "x"
		s.note("created for " + pod.Spec.SchedulerName)
		if lag, ok := s.lag[pod.Spec.SchedulerName]; ok {
			time.AfterFunc(lag, func() { s.decide(pod.DeepCopy()) })
		}
		return true, pod, s.Tracker().Create(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace)
	})
	s.PrependReactor("delete", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
		s.note("deleted")
		return false, nil, nil
	})
	s.PrependReactor("patch", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		s.note("condition set")
		return true, node, nil
	})
	return s
}

func (s *schedulers) note(what string) {
	s.log = append(s.log, time.Since(s.start).String()+" "+what)
}

func (s *schedulers) decide(pod *corev1.Pod) {
	if s.bound[pod.Spec.SchedulerName] {
		pod.Spec.NodeName = "n0"
	} else {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	}
	_ = s.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), pod, pod.Namespace) // it may be gone
}

// TestConfirm: the condition is set when each scheduler has said something about a pod that was created after the mirror pods; no witness is left.
func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedulers(map[string]time.Duration{"default-scheduler": 3100 * time.Millisecond, "second": 0})
		s.bound["default-scheduler"] = true
		var log bytes.Buffer
		err := Run(t.Context(), Config{
			Client: s.CoreV1(), Folder: fstest.MapFS{}, NodeName: "n0", ConfirmSchedulers: []string{"default-scheduler", "second"}, Log: &log,
		})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"0s created for default-scheduler", "3.25s deleted", "3.25s created for second", "3.5s deleted", "3.5s condition set"}
		if diff := cmp.Diff(want, s.log); diff != "" {
			t.Errorf("(-want +got)\n%s\n%s", diff, log.String())
		}
	})
}

// TestConfirmTriesAgain: what fails holds the node, and is tried again, also with a witness that somebody else has deleted.
func TestConfirmTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedulers(map[string]time.Duration{"default-scheduler": time.Second})
		refuse := true
		s.PrependReactor("create", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
			if !refuse {
				return false, nil, nil
			}
			refuse = false
			return true, nil, errors.New("not now")
		})
		time.AfterFunc(2100*time.Millisecond, func() {
			if err := s.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), manifests.WitnessNamespace, "witness-x"); err != nil {
				t.Error(err)
			}
		})
		var log bytes.Buffer
		if err := Run(t.Context(), Config{Client: s.CoreV1(), Folder: fstest.MapFS{}, NodeName: "n0", ConfirmSchedulers: []string{"default-scheduler"}, Log: &log}); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"asking scheduler default-scheduler for the mirror pods failed: create a witness pod: not now", "get witness pod witness-x: ", "default-scheduler has seen"} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("the log has no %q:\n%s", line, log.String())
			}
		}
	})
}

// TestConfirmInterrupted: a scheduler that says nothing holds the node, and an interrupted check leaves no witness.
func TestConfirmInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedulers(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Run(ctx, Config{Client: s.CoreV1(), Folder: fstest.MapFS{}, NodeName: "n0", ConfirmSchedulers: []string{"none"}})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "wait for scheduler none on node n0") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff([]string{"0s created for none", "1m0s deleted"}, s.log); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestWitness: it can run on its node only, past every taint, and goes with the Node.
func TestWitness(t *testing.T) {
	pod := newWitness(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n0", UID: "u0"}}, "second")
	term := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
	if term.Key != "metadata.name" || !cmp.Equal(term.Values, []string{"n0"}) || pod.Spec.SchedulerName != "second" || pod.OwnerReferences[0].UID != "u0" {
		t.Errorf("got %+v", pod)
	}
	if !IsWitness(pod) || IsWitness(&corev1.Pod{}) {
		t.Error("a witness is not told from other pods")
	}
	if requested := requests(pod); len(requested) > 0 {
		t.Errorf("it requests %v", requested)
	}
}
