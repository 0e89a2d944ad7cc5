package fault

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// effectivePoll is how often a new policy is tried: the API server takes about a second to compile and apply one.
const effectivePoll = 100 * time.Millisecond

// Faults are the API faults of a run.
type Faults struct {
	client kubernetes.Interface
	trace  trace.Recorder
	faults []sim.APIFault
}

// New makes the faults; each is valid. access must be allowed to write namespaces, PriorityClasses and admission policies.
func New(access *rest.Config, faults []sim.APIFault, out trace.Recorder) (*Faults, error) {
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("make client for API faults: %w", err)
	}
	return &Faults{client: client, trace: out, faults: faults}, nil
}

// MissingNamespaces are those that nobody else must create.
func (f *Faults) MissingNamespaces() []string {
	var names []string
	for i := range f.faults {
		if name := f.faults[i].MissingNamespace; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Begin has the faults begin that are there when the scale-up starts, and returns when they are effective.
func (f *Faults) Begin(ctx context.Context) error {
	for i := range f.faults {
		if f.faults[i].From.Duration > 0 {
			continue
		}
		if err := f.begin(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// Play has the faults begin and end when their time has come, counted from the call, and returns after the last one that ends.
func (f *Faults) Play(ctx context.Context) error {
	start := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for i := range f.faults {
		group.Go(func() error { return f.play(ctx, start, i) })
	}
	return group.Wait()
}

func (f *Faults) play(ctx context.Context, start time.Time, i int) error {
	fault := &f.faults[i]
	if from := fault.From.Duration; from > 0 {
		if err := sim.Sleep(ctx, time.Until(start.Add(from))); err != nil {
			return err
		}
		if err := f.begin(ctx, i); err != nil {
			return err
		}
	}
	if fault.Until == nil {
		return nil
	}
	if err := sim.Sleep(ctx, time.Until(start.Add(fault.Until.Duration))); err != nil {
		return err
	}
	return f.end(ctx, i)
}

func (f *Faults) begin(ctx context.Context, i int) error {
	fault := &f.faults[i]
	if fault.RefuseMirrors != nil {
		if err := f.refuse(ctx, i); err != nil {
			return fmt.Errorf("begin to refuse mirror pods: %w", err)
		}
	}
	f.trace.Record(trace.Event{Kind: trace.FaultStarted, Source: trace.SourceRun, Message: describe(fault)})
	return nil
}

func (f *Faults) end(ctx context.Context, i int) (err error) {
	fault := &f.faults[i]
	switch {
	case fault.RefuseMirrors != nil:
		policies := f.client.AdmissionregistrationV1()
		err = errors.Join(
			policies.ValidatingAdmissionPolicyBindings().Delete(ctx, policyName(i), metav1.DeleteOptions{}),
			policies.ValidatingAdmissionPolicies().Delete(ctx, policyName(i), metav1.DeleteOptions{}))
	case fault.MissingNamespace != "":
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fault.MissingNamespace}}
		_, err = f.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	default:
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fault.MissingPriorityClass.Name}, Value: fault.MissingPriorityClass.Value}
		_, err = f.client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("end the fault %q: %w", describe(fault), err)
	}
	f.trace.Record(trace.Event{Kind: trace.FaultEnded, Source: trace.SourceRun, Message: describe(fault)})
	return nil
}

func describe(fault *sim.APIFault) string {
	switch {
	case fault.RefuseMirrors != nil && len(fault.RefuseMirrors.Groups) > 0:
		return "mirror pods of node groups " + strings.Join(fault.RefuseMirrors.Groups, ", ") + " are refused"
	case fault.RefuseMirrors != nil:
		return "mirror pods are refused"
	case fault.MissingNamespace != "":
		return "namespace " + fault.MissingNamespace + " is missing"
	}
	return "PriorityClass " + fault.MissingPriorityClass.Name + " is missing"
}

// refuse installs a policy and waits until the API server goes by it.
func (f *Faults) refuse(ctx context.Context, i int) error {
	policies := f.client.AdmissionregistrationV1()
	if _, err := policies.ValidatingAdmissionPolicies().Create(ctx, policy(policyName(i), f.faults[i].RefuseMirrors), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create its ValidatingAdmissionPolicy: %w", err)
	}
	if _, err := policies.ValidatingAdmissionPolicyBindings().Create(ctx, binding(policyName(i)), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the binding of its ValidatingAdmissionPolicy: %w", err)
	}
	err := wait.PollUntilContextCancel(ctx, effectivePoll, true, func(ctx context.Context) (bool, error) { return f.refuses(ctx, f.faults[i].RefuseMirrors) })
	if err != nil {
		return fmt.Errorf("wait until its ValidatingAdmissionPolicy is effective: %w", err)
	}
	return nil
}

// refuses tries whether a mirror pod would be refused, without doing anything.
func (f *Faults) refuses(ctx context.Context, refuse *sim.RefuseMirrors) (refused bool, err error) {
	if refuse.Deletions {
		err = f.tryToDelete(ctx, refuse.Groups)
	} else {
		err = f.tryToCreate(ctx, refuse.Groups)
	}
	switch {
	case errors.Is(err, errNothingToTry):
		return true, nil
	case err == nil:
		return false, nil
	case strings.Contains(err.Error(), refusal):
		return true, nil
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err):
		return false, fmt.Errorf("try a mirror pod: %w", err)
	}
	return false, nil
}

func (f *Faults) tryToCreate(ctx context.Context, groups []string) error {
	node := "any-0"
	if len(groups) > 0 {
		node = groups[0] + "-0"
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "mirrorgap-probe-" + node, Namespace: metav1.NamespaceDefault,
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "probe"},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "probe", Image: "probe"}}},
	}
	_, err := f.client.CoreV1().Pods(probe.Namespace).Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// errNothingToTry says that there is no mirror pod yet whose deletion could be refused.
var errNothingToTry = errors.New("no mirror pod is there")

func (f *Faults) tryToDelete(ctx context.Context, groups []string) error {
	pods, err := f.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		group, _, _ := cutLast(pod.Spec.NodeName, "-")
		if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror && (len(groups) == 0 || slices.Contains(groups, group)) {
			return f.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		}
	}
	return errNothingToTry
}

// cutLast is strings.Cut around the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}

func policyName(i int) string { return fmt.Sprintf("mirrorgap-refuse-mirrors-%d", i) }

// refusal is what the API server says to a mirror pod.
const refusal = "the experiment has mirror pods refused"

func policy(name string, refuse *sim.RefuseMirrors) *admissionv1.ValidatingAdmissionPolicy {
	fail, operation, object := admissionv1.Fail, admissionv1.Create, "object"
	if refuse.Deletions {
		operation, object = admissionv1.Delete, "oldObject"
	}
	return &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "mirror-pods", Expression: mirrorsOf(object, refuse.Groups)}},
			Validations:     []admissionv1.Validation{{Expression: "false", Message: refusal}},
		},
	}
}

// mirrorsOf is a CEL expression that holds when an object is a mirror pod of a node of some groups, or of any node if there are none.
func mirrorsOf(object string, groups []string) string {
	expression := fmt.Sprintf("has(%s.metadata.annotations) && '%s' in %s.metadata.annotations", object, corev1.MirrorPodAnnotationKey, object)
	if len(groups) == 0 {
		return expression
	}
	names := make([]string, len(groups))
	for i, group := range groups {
		names[i] = regexp.QuoteMeta(group)
	}
	return expression + fmt.Sprintf(" && %s.spec.nodeName.matches('^(%s)-[0-9]+$')", object, strings.Join(names, "|"))
}

func binding(name string) *admissionv1.ValidatingAdmissionPolicyBinding {
	return &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
}
