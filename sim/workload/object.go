package workload

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/sim"
)

// Objects builds the objects of a workload whose Fill, if any, has been resolved to Replicas: one object, or for a Pod as many as Replicas says.
func Objects(w sim.Workload) ([]client.Object, error) {
	object, err := w.Object()
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", w.Name, err)
	}
	if object.GetNamespace() == "" {
		object.SetNamespace(metav1.NamespaceDefault)
	}
	if pod, ok := object.(*corev1.Pod); ok {
		dress(&pod.ObjectMeta, &pod.Spec, w)
		return copies(pod, w.Replicas), nil
	}
	if w.Replicas != nil {
		setReplicas(object, w.Replicas)
	}
	template := sim.PodTemplate(object)
	dress(&template.ObjectMeta, &template.Spec, w)
	return []client.Object{object}, nil
}

// setReplicas overrides the number of pods; a Job runs all of its pods at once.
func setReplicas(object client.Object, replicas *int32) {
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Spec.Replicas = replicas
	case *appsv1.ReplicaSet:
		o.Spec.Replicas = replicas
	case *batchv1.Job:
		o.Spec.Parallelism, o.Spec.Completions = replicas, replicas
	}
}

// dress labels a pod, or a template of pods, with its workload, and pins it to the workload's node groups or its node.
func dress(meta *metav1.ObjectMeta, spec *corev1.PodSpec, w sim.Workload) {
	meta.Labels = with(meta.Labels, sim.LabelWorkload, w.Name)
	switch len(w.Groups) {
	case 0:
	case 1:
		spec.NodeSelector = with(spec.NodeSelector, sim.LabelGroup, w.Groups[0])
	default:
		requireGroups(spec, w.Groups)
	}
	if w.PinTo != "" {
		spec.NodeName = w.PinTo
	}
}

// with is labels and one more. It is a copy: a generated object's template shares its labels with the selector.
func with(labels map[string]string, key, value string) map[string]string {
	more := maps.Clone(labels)
	if more == nil {
		more = map[string]string{}
	}
	more[key] = value
	return more
}

// requireGroups adds the groups to every term of the required node affinity: terms are alternatives, so each must name them.
func requireGroups(spec *corev1.PodSpec, groups []string) {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	node := spec.Affinity.NodeAffinity
	if node.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		node.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := node.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchExpressions = append(terms[i].MatchExpressions, corev1.NodeSelectorRequirement{
			Key: sim.LabelGroup, Operator: corev1.NodeSelectorOpIn, Values: slices.Clone(groups),
		})
	}
}

// copies numbers the copies of a pod from 0; a single one keeps its name.
func copies(pod *corev1.Pod, replicas *int32) []client.Object {
	if replicas == nil {
		return []client.Object{pod}
	}
	pods := make([]client.Object, *replicas)
	for i := range pods {
		c := pod.DeepCopy()
		c.Name = fmt.Sprintf("%s-%d", pod.Name, i)
		pods[i] = c
	}
	return pods
}
