package workload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/sim"
)

// Creator creates workloads through the API.
type Creator struct {
	client client.Client
}

// NewCreator makes a Creator that uses cfg.
func NewCreator(cfg *rest.Config) (*Creator, error) {
	c, err := client.New(cfg, client.Options{Scheme: scheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &Creator{client: c}, nil
}

// Create creates the objects of every workload, each as long after the call as its workload says, and returns when all are there. Missing namespaces
// are created. It fails on the first object that the API server refuses.
func (c *Creator) Create(ctx context.Context, workloads []sim.Workload) error {
	start := time.Now()
	for _, w := range byTime(workloads) {
		if err := sim.Sleep(ctx, time.Until(start.Add(w.After.Duration))); err != nil {
			return err
		}
		objects, err := Objects(w)
		if err != nil {
			return err
		}
		for _, obj := range objects {
			if err := c.create(ctx, obj); err != nil {
				return fmt.Errorf("create workload %s: %w", w.Name, err)
			}
		}
	}
	return nil
}

// CreatePriorityClasses creates the PriorityClasses. It fails on the first one that the API server refuses.
func (c *Creator) CreatePriorityClasses(ctx context.Context, classes []sim.PriorityClass) error {
	for _, class := range classes {
		object := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class.Name}, Value: class.Value}
		if err := c.client.Create(ctx, object); err != nil {
			return fmt.Errorf("create PriorityClass %s: %w", class.Name, err)
		}
	}
	return nil
}

func (c *Creator) create(ctx context.Context, obj client.Object) error {
	err := c.client.Create(ctx, obj)
	if !missingNamespace(err) {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: obj.GetNamespace()}}
	if err := c.client.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return c.client.Create(ctx, obj)
}

func missingNamespace(err error) bool {
	if !apierrors.IsNotFound(err) {
		return false
	}
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Kind == "namespaces"
}

// byTime orders the workloads by their time of creation, those of the same time as in the experiment.
func byTime(workloads []sim.Workload) []sim.Workload {
	return slices.SortedStableFunc(slices.Values(workloads), func(a, b sim.Workload) int {
		return cmp.Compare(a.After.Duration, b.After.Duration)
	})
}
