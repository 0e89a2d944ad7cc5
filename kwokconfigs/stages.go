package kwokconfigs

import (
	"context"
	"embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

// The annotations that the stages read.
const (
	// AnnotationReadyAt, on a Node, is when it becomes Ready: an absolute time in RFC 3339 with up to nanoseconds (time.RFC3339Nano). Absent, or
	// not such a time: at once. A time in the past means at once too.
	AnnotationReadyAt = "mirrorgap.dev/ready-at"
	// AnnotationRunFor, on a Pod of a Job, is how long it runs before it succeeds: a non-negative Go duration such as "90s". Absent, or not a duration: 1 s.
	AnnotationRunFor = "mirrorgap.dev/run-for"
)

// FS holds the Stage files, one Stage each, named after it.
//
//go:embed node-*.yaml pod-*.yaml
var FS embed.FS

// Stages returns the stages for nodes whose Leases KWOK renews (controllers.Config.NodeLeaseDurationSeconds above 0), in KWOK's internal form: all of FS
// but node-heartbeat. KWOK wants them grouped by Spec.ResourceRef (controllers.Config.LocalStages). An error names the file that KWOK could not use.
//
// Call it before KWOK's controllers start, and not from several goroutines at once: KWOK v0.8.0 registers the types of its expression language in an
// unguarded global map when a stage is first matched, which its node and pod controllers do at the same time. Stages matches each one before.
func Stages() ([]*internalversion.Stage, error) {
	var stages []*internalversion.Stage
	for _, name := range []string{"node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-completed", "pod-delete"} {
		stage, err := load(name + ".yaml")
		if err != nil {
			return nil, err
		}
		stages = append(stages, stage)
	}
	return stages, nil
}

// load decodes a Stage file strictly, which KWOK itself does not: a misspelt field would silently change the stage.
func load(file string) (*internalversion.Stage, error) {
	data, err := FS.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read stage: %w", err)
	}
	var stage v1alpha1.Stage
	if err := yaml.UnmarshalStrict(data, &stage); err != nil {
		return nil, fmt.Errorf("decode stage %s: %w", file, err)
	}
	internal, err := internalversion.ConvertToInternalStage(&stage)
	if err != nil {
		return nil, fmt.Errorf("convert stage %s to KWOK's internal form: %w", file, err)
	}
	if err := compile(internal); err != nil {
		return nil, fmt.Errorf("compile stage %s: %w", file, err)
	}
	return internal, nil
}

// compile has KWOK compile the stage's expressions, which it does on the first match.
func compile(stage *internalversion.Stage) error {
	var object any = &corev1.Node{}
	if stage.Spec.ResourceRef.Kind == "Pod" {
		object = &corev1.Pod{}
	}
	//nolint:forbidigo // it only compiles: nothing waits
	_, err := lifecycle.Lifecycle{lifecycle.NewStage(stage)}.ListAllPossible(context.Background(), &lifecycle.Event{Data: object})
	return err
}
