package recorder

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// recording is a recorder that runs against a fake API server.
type recording struct {
	*Recorder
	api  *fake.Clientset
	stop context.CancelFunc
	done chan error

	mu     sync.Mutex
	events []string
}

// start runs a recorder in the bubble of the test.
func start(t *testing.T, api *fake.Clientset) *recording {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &recording{api: api, stop: stop, done: make(chan error, 1)}
	r.Recorder = newRecorder(api, trace.RecorderFunc(func(e trace.Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, strings.TrimSpace(fmt.Sprintf("%s %s%s%s", e.Kind, e.Node, e.Pod, e.Reason)))
	}), nil)
	go func() { r.done <- r.Run(ctx) }()
	return r
}

// recorded is everything so far, once nothing happens any more.
func (r *recording) recorded() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func (r *recording) expect(t *testing.T, want ...string) {
	t.Helper()
	got := r.recorded()
	slices.Sort(got) // events of nodes and of pods come through different watches
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}

func TestRunRecordsWhatIsThereAndWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, fake.NewSimpleClientset(node(1, nil), pod(2, nil)))
		r.expect(t, "NodeRegistered pool-0", "PodCreated default/web-x")
		if err := r.api.Tracker().Add(node(3, func(n *corev1.Node) { n.Name, n.UID = "pool-1", "u1" })); err != nil {
			t.Fatal(err)
		}
		if err := r.api.CoreV1().Pods("default").Delete(t.Context(), "web-x", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		r.expect(t, "NodeRegistered pool-0", "PodCreated default/web-x", "NodeRegistered pool-1", "PodDeleted default/web-x")
		r.stop()
		if err := <-r.done; err != nil {
			t.Errorf("a recorder that was told to end returned %v", err)
		}
		for _, a := range r.api.Actions() {
			if verb := a.GetVerb(); verb != "list" && verb != "watch" && verb != "delete" {
				t.Errorf("the recorder does %s %s: it must only look", verb, a.GetResource().Resource)
			}
		}
	})
}

// TestSyncedMeansNothingIsMissed: an object that comes between list and watch is recorded all the same.
func TestSyncedMeansNothingIsMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewSimpleClientset()
		api.PrependWatchReactor("pods", func(ktesting.Action) (bool, watch.Interface, error) {
			if err := api.Tracker().Add(pod(2, nil)); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Error(err)
			}
			return false, nil, nil
		})
		r := start(t, api)
		r.expect(t, "PodCreated default/web-x")
		r.stop()
		<-r.done
	})
}

// scripted answers each opening of a watch with the next of a list of watches or errors, and after that with watches in which nothing happens.
type scripted struct {
	opened []string
	next   []func() (watch.Interface, error)
}

func (s *scripted) react(a ktesting.Action) (bool, watch.Interface, error) {
	s.opened = append(s.opened, a.(ktesting.WatchActionImpl).ListOptions.ResourceVersion)
	if len(s.next) == 0 {
		return true, watch.NewFake(), nil
	}
	answer := s.next[0]
	s.next = s.next[1:]
	w, err := answer()
	return true, w, err
}

// events is a watch of these events that then ends.
func events(list ...watch.Event) func() (watch.Interface, error) {
	return func() (watch.Interface, error) {
		ch := make(chan watch.Event, len(list))
		for _, e := range list {
			ch <- e
		}
		close(ch)
		return watch.NewProxyWatcher(ch), nil
	}
}

func refused(err error) func() (watch.Interface, error) {
	return func() (watch.Interface, error) { return nil, err }
}

func gone() *metav1.Status {
	return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version"}
}

// TestInterruptedWatchGoesOn: a watch that just ends is taken up where it ended, so nothing is missed and nothing is recorded twice, and the trace tells when.
func TestInterruptedWatchGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewSimpleClientset()
		pods := &scripted{next: []func() (watch.Interface, error){
			events(watch.Event{Type: watch.Added, Object: pod(7, nil)}),
			refused(errors.New("connection refused")),
			events(watch.Event{Type: watch.Bookmark, Object: pod(9, nil)}),
		}}
		api.PrependWatchReactor("pods", pods.react)
		r := start(t, api)
		time.Sleep(time.Minute)
		r.expect(t, "PodCreated default/web-x", "WatchBroken pods", "WatchResumed pods", "WatchBroken pods", "WatchResumed pods")
		if broken := r.Broken(); len(broken) > 0 {
			t.Errorf("broken: %v", broken)
		}
		if want := []string{"1", "7", "7", "9"}; !slices.Equal(pods.opened, want) {
			t.Errorf("watched from the versions %v, want %v", pods.opened, want)
		}
		r.stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
	})
}

// TestBrokenWatch: while a watch cannot be taken up, the recorder says so; that it ends is no break.
func TestBrokenWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []func() (watch.Interface, error){events()}
		for range 300 {
			answers = append(answers, refused(errors.New("connection refused")))
		}
		api := fake.NewSimpleClientset()
		api.PrependWatchReactor("nodes", (&scripted{next: answers}).react)
		r := start(t, api)
		time.Sleep(time.Minute)
		r.stop()
		if err := <-r.done; err != nil {
			t.Error(err)
		}
		r.expect(t, "WatchBroken nodes")
		if broken := r.Broken(); !slices.Equal(broken, []string{"nodes"}) {
			t.Errorf("broken: %v, want nodes", broken)
		}
	})
}

// TestHoleEndsTheRecording: whatever keeps a watch from going on where it broke off is an error that names the watch, and ends the other one too.
func TestHoleEndsTheRecording(t *testing.T) {
	for name, answers := range map[string][]func() (watch.Interface, error){
		"410 Gone in the watch":           {events(watch.Event{Type: watch.Error, Object: gone()})},
		"410 Gone when it is taken up":    {events(), refused(&apierrors.StatusError{ErrStatus: *gone()})},
		"403 Forbidden when it is opened": {refused(apierrors.NewForbidden(corev1.Resource("nodes"), "", errors.New("no")))},
		"an event of no kind":             {events(watch.Event{Type: "Strange", Object: node(1, nil)})},
		"an object without a version":     {events(watch.Event{Type: watch.Added, Object: &corev1.Node{}})},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewSimpleClientset()
				api.PrependWatchReactor("nodes", (&scripted{next: answers}).react)
				r := start(t, api)
				time.Sleep(time.Minute)
				select {
				case err := <-r.done:
					if err == nil || !strings.Contains(err.Error(), "watch nodes") {
						t.Errorf("ended with %v, want an error about the watch of nodes", err)
					}
				default:
					t.Error("the recorder goes on as if nothing had happened")
					r.stop()
				}
			})
		})
	}
}

// TestUnwatchable: without the right to list there is no recording, and Synced is not closed.
func TestUnwatchable(t *testing.T) {
	for _, what := range []string{"nodes", "pods"} {
		api := fake.NewSimpleClientset()
		api.PrependReactor("list", what, func(ktesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(corev1.Resource(what), "", errors.New("no"))
		})
		r := newRecorder(api, trace.Discard, nil)
		if err := r.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "list "+what) {
			t.Errorf("got %v, want an error about the list of %s", err, what)
		}
		select {
		case <-r.Synced():
			t.Error("Synced is closed")
		default:
		}
	}
}
