package sim

import (
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	sjson "sigs.k8s.io/json"

	readinessv1alpha1 "github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// Content is the text of the manifest's file on a node. A Manifest that is a JSON string is that text itself, so that what is not YAML can be
// put on a node as well; any other is written as JSON, which is YAML too.
func (s *StaticPod) Content() []byte {
	var text string
	if json.Unmarshal(s.Manifest, &text) == nil {
		return []byte(text)
	}
	return s.Manifest
}

// Pod decodes the manifest, strictly. Unlike a kubelet it applies no defaults.
func (s *StaticPod) Pod() (*corev1.Pod, error) {
	pod := new(corev1.Pod)
	if err := decode(s.Manifest, pod, corev1.SchemeGroupVersion.String(), "Pod"); err != nil {
		return nil, err
	}
	return pod, nil
}

// DecodeRule decodes Rule, strictly.
func (g *Gate) DecodeRule() (*readinessv1alpha1.NodeReadinessRule, error) {
	rule := new(readinessv1alpha1.NodeReadinessRule)
	if err := decode(g.Rule, rule, readinessv1alpha1.GroupVersion.String(), "NodeReadinessRule"); err != nil {
		return nil, err
	}
	return rule, nil
}

// DecodeDaemonSet decodes DaemonSet, strictly.
func (c *Check) DecodeDaemonSet() (*appsv1.DaemonSet, error) {
	set := new(appsv1.DaemonSet)
	if err := decode(c.DaemonSet, set, appsv1.SchemeGroupVersion.String(), "DaemonSet"); err != nil {
		return nil, err
	}
	return set, nil
}

// NewWorkloadObject returns an empty object of a kind that a workload may have, or nil for any other kind.
func NewWorkloadObject(apiVersion, kind string) client.Object {
	switch apiVersion + " " + kind {
	case "v1 Pod":
		return new(corev1.Pod)
	case "apps/v1 ReplicaSet":
		return new(appsv1.ReplicaSet)
	case "apps/v1 Deployment":
		return new(appsv1.Deployment)
	case "apps/v1 DaemonSet":
		return new(appsv1.DaemonSet)
	case "batch/v1 Job":
		return new(batchv1.Job)
	}
	return nil
}

// workloadKinds says in errors what NewWorkloadObject knows.
const workloadKinds = "a Pod (v1), a ReplicaSet, Deployment or DaemonSet (apps/v1), or a Job (batch/v1)"

// Object is the workload's object: Manifest, decoded strictly, or what Generate describes. It has neither Replicas nor Groups nor PinTo applied.
func (w *Workload) Object() (client.Object, error) {
	if w.Generate != nil {
		return w.Generate.object(w.Name)
	}
	var head metav1.TypeMeta
	if err := json.Unmarshal(w.Manifest, &head); err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	object := NewWorkloadObject(head.APIVersion, head.Kind)
	if object == nil {
		return nil, fmt.Errorf("apiVersion %q and kind %q: a workload must be %s; write the objects of a List as workloads of their own",
			head.APIVersion, head.Kind, workloadKinds)
	}
	if err := decode(w.Manifest, object, head.APIVersion, head.Kind); err != nil {
		return nil, err
	}
	return object, nil
}

// Kind is the kind of object that the workload is, or empty when its manifest has none.
func (w *Workload) Kind() string {
	if w.Generate != nil {
		return w.Generate.Kind
	}
	var head metav1.TypeMeta
	if json.Unmarshal(w.Manifest, &head) != nil {
		return ""
	}
	return head.Kind
}

// Pod is a pod of the workload as its manifest, or Generate, has it.
func (w *Workload) Pod() (*corev1.Pod, error) {
	object, err := w.Object()
	if err != nil {
		return nil, err
	}
	if pod, ok := object.(*corev1.Pod); ok {
		return pod, nil
	}
	template := PodTemplate(object)
	return &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, nil
}

// PodTemplate is the pod template within an object of a kind that a workload may have, to be read or changed; nil for a Pod.
func PodTemplate(object client.Object) *corev1.PodTemplateSpec {
	switch o := object.(type) {
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	}
	return nil
}

// withLimits lets limits stand in for the requests that are absent, as the API's defaults do before anybody counts them.
func withLimits(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Resources.Requests = filled(containers[i].Resources.Requests, containers[i].Resources.Limits)
		}
	}
	return pod
}

// decode decodes a manifest of a known kind, strictly; the error has everything that is wrong, with field paths.
func decode(manifest json.RawMessage, into any, apiVersion, kind string) error {
	var head metav1.TypeMeta
	if err := json.Unmarshal(manifest, &head); err != nil {
		return fmt.Errorf("decode manifest of kind %s: %w", kind, err)
	}
	if head.APIVersion != apiVersion || head.Kind != kind {
		return fmt.Errorf("apiVersion %q and kind %q: must be %s and %s", head.APIVersion, head.Kind, apiVersion, kind)
	}
	strict, err := sjson.UnmarshalStrict(manifest, into)
	if err := errors.Join(append(strict, err)...); err != nil {
		return fmt.Errorf("decode manifest of kind %s: %w", kind, err)
	}
	return nil
}
