package sim

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pauseImage is never pulled: containers of simulated nodes do not run. It is what the manifests of such experiments usually name.
const pauseImage = "registry.k8s.io/pause:3.10"

// object makes the manifest that g describes, called name and with pods labelled app: name.
func (g *Generate) object(name string) (client.Object, error) {
	labels := map[string]string{"app": name}
	meta := metav1.ObjectMeta{Name: name}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: g.podSpec()}
	apps := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "apps/v1", Kind: kind} }
	switch g.Kind {
	case "Deployment":
		return &appsv1.Deployment{TypeMeta: apps(g.Kind), ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, nil
	case "ReplicaSet":
		return &appsv1.ReplicaSet{TypeMeta: apps(g.Kind), ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template}}, nil
	case "DaemonSet":
		return &appsv1.DaemonSet{TypeMeta: apps(g.Kind), ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}}, nil
	case "Job":
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		batch := metav1.TypeMeta{APIVersion: "batch/v1", Kind: g.Kind}
		return &batchv1.Job{TypeMeta: batch, ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}}, nil
	case "Pod":
		meta.Labels = labels
		return &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: g.Kind}, ObjectMeta: meta, Spec: template.Spec}, nil
	}
	return nil, fmt.Errorf("generate a %q: it must be one of %v", g.Kind, generateKinds)
}

func (g *Generate) podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "pause", Image: pauseImage,
			Resources: corev1.ResourceRequirements{Requests: g.Requests},
		}},
		PriorityClassName: g.PriorityClassName,
		SchedulerName:     g.SchedulerName,
		Tolerations:       g.Tolerations,
	}
}
