package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/mirrorgap/mirrorgap/sim"
)

// api is a fake API server that knows which namespaces there are, and writes down when what was created.
type api struct {
	start      time.Time
	created    []string
	namespaces map[string]bool
	// refuse, if set, is asked about every object.
	refuse func(client.Object) error
}

func newAPI() *api { return &api{start: time.Now(), namespaces: map[string]bool{"default": true}} }

func (a *api) creator() *Creator {
	return &Creator{client: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithInterceptorFuncs(interceptor.Funcs{Create: a.create}).Build()}
}

func (a *api) create(_ context.Context, _ client.WithWatch, obj client.Object, _ ...client.CreateOption) error {
	if a.refuse != nil {
		if err := a.refuse(obj); err != nil {
			return err
		}
	}
	if namespace, ok := obj.(*corev1.Namespace); ok {
		a.namespaces[namespace.Name] = true
	} else if !a.namespaces[obj.GetNamespace()] {
		return apierrors.NewNotFound(corev1.Resource("namespaces"), obj.GetNamespace())
	}
	a.created = append(a.created, fmt.Sprintf("%v %s", time.Since(a.start), client.ObjectKeyFromObject(obj)))
	return nil
}

func TestCreateInTheOrderOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		workloads := []sim.Workload{
			workload(t, `{name: late, generate: {requests: {cpu: 1}}, replicas: 1, after: 90s}`),
			workload(t, `{name: b, generate: {requests: {cpu: 1}}, replicas: 1}`),
			workload(t, `{name: a, generate: {kind: Pod, requests: {cpu: 1}}, replicas: 2}`),
			workload(t, `{name: soon, generate: {requests: {cpu: 1}}, replicas: 1, after: 3s}`),
		}
		if err := a.creator().Create(t.Context(), workloads); err != nil {
			t.Fatal(err)
		}
		want := []string{"0s default/b", "0s default/a-0", "0s default/a-1", "3s default/soon", "1m30s default/late"}
		if !slices.Equal(a.created, want) {
			t.Errorf("created %q, want %q", a.created, want)
		}
		if workloads[0].Name != "late" {
			t.Error("the caller's list was put in another order")
		}
	})
}

// TestTimesDoNotAddUp: what the API server takes its time for does not move what comes later.
func TestTimesDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		a.refuse = func(client.Object) error { time.Sleep(2 * time.Second); return nil }
		err := a.creator().Create(t.Context(), []sim.Workload{
			workload(t, `{name: a, generate: {requests: {cpu: 1}}, replicas: 1}`),
			workload(t, `{name: b, generate: {requests: {cpu: 1}}, replicas: 1, after: 3s}`),
			workload(t, `{name: c, generate: {requests: {cpu: 1}}, replicas: 1, after: 4s}`),
		})
		want := []string{"2s default/a", "5s default/b", "7s default/c"}
		if err != nil || !slices.Equal(a.created, want) {
			t.Errorf("created %q (%v), want %q", a.created, err, want)
		}
	})
}

func TestMissingNamespaceIsCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		pod := `{name: %s, manifest: {apiVersion: v1, kind: Pod, metadata: {name: %[1]s, namespace: shop}}}`
		err := a.creator().Create(t.Context(), []sim.Workload{workload(t, fmt.Sprintf(pod, "a")), workload(t, fmt.Sprintf(pod, "b"))})
		want := []string{"0s /shop", "0s shop/a", "0s shop/b"}
		if err != nil || !slices.Equal(a.created, want) {
			t.Errorf("created %q (%v), want %q", a.created, err, want)
		}
	})
}

func TestPriorityClasses(t *testing.T) { synctest.Test(t, testPriorityClasses) }

func testPriorityClasses(t *testing.T) {
	a := newAPI()
	a.namespaces[""] = true // where what has no namespace is
	var values []int32
	a.refuse = func(obj client.Object) error {
		values = append(values, obj.(*schedulingv1.PriorityClass).Value)
		return nil
	}
	if err := a.creator().CreatePriorityClasses(t.Context(), []sim.PriorityClass{{Name: "spare", Value: -10}, {Name: "high", Value: 10}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a.created, []string{"0s /spare", "0s /high"}) || !slices.Equal(values, []int32{-10, 10}) {
		t.Errorf("created %q with values %d", a.created, values)
	}
	no := errors.New("webhook says no")
	a.refuse = func(client.Object) error { return no }
	if err := a.creator().CreatePriorityClasses(t.Context(), []sim.PriorityClass{{Name: "third"}}); !errors.Is(err, no) || !strings.Contains(err.Error(), "third") {
		t.Errorf("got %v, want the refusal of the third class", err)
	}
}

// TestRefusal: the first object that is refused ends the creation with an error that names the workload.
func TestRefusal(t *testing.T) {
	no := errors.New("admission webhook says no")
	for name, refuses := range map[string]func(client.Object) bool{
		"the object":    func(obj client.Object) bool { return obj.GetName() == "b" },
		"its namespace": func(obj client.Object) bool { _, is := obj.(*corev1.Namespace); return is },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI()
			a.refuse = func(obj client.Object) error {
				if refuses(obj) {
					return no
				}
				return nil
			}
			pod := `{name: %s, manifest: {apiVersion: v1, kind: Pod, metadata: {name: %[1]s, namespace: %s}}}`
			err := a.creator().Create(t.Context(), []sim.Workload{
				workload(t, fmt.Sprintf(pod, "a", "default")), workload(t, fmt.Sprintf(pod, "b", "shop")), workload(t, fmt.Sprintf(pod, "c", "default")),
			})
			if !errors.Is(err, no) || !strings.Contains(err.Error(), "workload b") {
				t.Errorf("got %v, want the refusal of workload b", err)
			}
			if last := a.created[len(a.created)-1]; strings.HasSuffix(last, "/c") {
				t.Error("what comes after the refused object was created")
			}
		})
	}
}

func TestCreateEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPI()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := a.creator().Create(ctx, []sim.Workload{workload(t, `{name: w, generate: {requests: {cpu: 1}}, replicas: 1, after: 1h}`)})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(a.start) != time.Minute || len(a.created) > 0 {
			t.Errorf("after %v: %v, created %q", time.Since(a.start), err, a.created)
		}
	})
}
