package workload

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/sim"
)

// pauseImage is never pulled: containers of simulated nodes do not run. It is what the manifests of such experiments usually name.
const pauseImage = "registry.k8s.io/pause:3.10"

// Objects builds the objects of a workload whose Fill, if any, has been resolved to Replicas: one object, or for a Pod as many as Replicas says.
func Objects(w sim.Workload) ([]client.Object, error) {
	obj, err := base(w)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", w.Name, err)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	switch o := obj.(type) {
	case *appsv1.Deployment:
		o.Spec.Replicas = override(w.Replicas, o.Spec.Replicas)
		dress(&o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec, w)
	case *appsv1.ReplicaSet:
		o.Spec.Replicas = override(w.Replicas, o.Spec.Replicas)
		dress(&o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec, w)
	case *appsv1.DaemonSet:
		dress(&o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec, w)
	case *batchv1.Job:
		o.Spec.Parallelism, o.Spec.Completions = override(w.Replicas, o.Spec.Parallelism), override(w.Replicas, o.Spec.Completions)
		dress(&o.Spec.Template.ObjectMeta, &o.Spec.Template.Spec, w)
	case *corev1.Pod:
		dress(&o.ObjectMeta, &o.Spec, w)
		o.Spec.NodeName = w.PinTo
		return copies(o, w.Replicas), nil
	default:
		return nil, fmt.Errorf("workload %s: a %T makes no pods: use a Deployment, ReplicaSet, Job, DaemonSet or Pod", w.Name, obj)
	}
	return []client.Object{obj}, nil
}

func base(w sim.Workload) (client.Object, error) {
	if w.Generate != nil {
		return generate(w)
	}
	obj, _, err := scheme.Codecs.UniversalDeserializer().Decode(w.Manifest, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("decode manifest: %w", err)
	}
	o, ok := obj.(client.Object)
	if !ok {
		return nil, fmt.Errorf("a %T is not a single object", obj)
	}
	return o, nil
}

func generate(w sim.Workload) (client.Object, error) {
	labels := map[string]string{"app": w.Name}
	meta := metav1.ObjectMeta{Name: w.Name, Namespace: metav1.NamespaceDefault}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name: "pause", Image: pauseImage,
				Resources: corev1.ResourceRequirements{Requests: w.Generate.Requests},
			}},
			PriorityClassName: w.Generate.PriorityClassName,
			Tolerations:       w.Generate.Tolerations,
		},
	}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	switch w.Generate.Kind {
	case "Deployment":
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, nil
	case "ReplicaSet", "":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, nil
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, nil
	case "Job":
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		return &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}, nil
	case "Pod":
		meta.Labels = labels
		return &corev1.Pod{ObjectMeta: meta, Spec: template.Spec}, nil
	}
	return nil, fmt.Errorf("generate a %q: use ReplicaSet, Deployment, Job, DaemonSet or Pod", w.Generate.Kind)
}

func override(replicas, own *int32) *int32 {
	if replicas != nil {
		return replicas
	}
	return own
}

// dress labels a pod template with its workload and pins it to the workload's node groups.
func dress(meta *metav1.ObjectMeta, spec *corev1.PodSpec, w sim.Workload) {
	meta.Labels = maps.Clone(meta.Labels)
	if meta.Labels == nil {
		meta.Labels = map[string]string{}
	}
	meta.Labels[sim.LabelWorkload] = w.Name
	switch len(w.Groups) {
	case 0:
	case 1:
		spec.NodeSelector = maps.Clone(spec.NodeSelector)
		if spec.NodeSelector == nil {
			spec.NodeSelector = map[string]string{}
		}
		spec.NodeSelector[sim.LabelGroup] = w.Groups[0]
	default:
		requireGroups(spec, w.Groups)
	}
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
