package kwokconfigs

import (
	"context"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/utils/gotpl"
	"sigs.k8s.io/kwok/pkg/utils/lifecycle"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var now = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// functions stand in for what KWOK's controllers give to templates.
var functions = gotpl.FuncMap{
	"Now":         func() string { return now.Format(time.RFC3339Nano) },
	"Version":     func() string { return "v0.8.0" },
	"NodeIP":      func() string { return "192.0.2.1" },
	"NodeName":    func() string { return "kwok.example" },
	"NodePort":    func() int { return 10247 },
	"NodeIPsWith": func(string) []string { return []string{"192.0.2.1"} },
	"PodIPsWith": func(_ string, hostNetwork bool, _, _, _ string) []string {
		if hostNetwork {
			return []string{"192.0.2.1"}
		}
		return []string{"10.1.0.7"}
	},
}

// played is what a stage does to an object; golden files hold a list of them.
type played struct {
	Stage string `json:"stage"`
	// Delay is the range in which KWOK draws the delay.
	Delay  []string `json:"delay,omitempty"`
	Delete bool     `json:"delete,omitempty"`
	// Status is the object's after the patch.
	Status any `json:"status,omitempty"`
}

// TestGolden plays every stage that matches an input, as KWOK's controllers do, on typed objects. No stage matches where the golden file is an empty list.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*/*.input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	for _, input := range inputs {
		golden := strings.TrimSuffix(input, ".input.yaml") + ".output.yaml"
		t.Run(strings.TrimPrefix(golden, "testdata/"), func(t *testing.T) {
			got, err := yaml.Marshal(play(t, readObject(t, input)))
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("read golden file (write it with -update): %v", err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

// TestEveryStageIsPlayed keeps TestGolden from passing because nothing matched.
func TestEveryStageIsPlayed(t *testing.T) {
	unplayed := map[string]bool{}
	for _, stage := range allStages(t) {
		unplayed[stage.Name] = true
	}
	inputs, err := filepath.Glob("testdata/*/*.input.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, input := range inputs {
		for _, p := range play(t, readObject(t, input)) {
			delete(unplayed, p.Stage)
		}
	}
	if len(unplayed) > 0 {
		t.Errorf("no input matches %v", unplayed)
	}
}

// TestForeignStatusSurvives holds the stages against what they must not touch.
func TestForeignStatusSurvives(t *testing.T) {
	for _, input := range []string{"registered", "lost-and-back", "ready"} {
		before := readObject(t, "testdata/node/"+input+".input.yaml").(*corev1.Node)
		for _, stage := range play(t, before) {
			after := stage.Status.(corev1.NodeStatus)
			if !equality.Semantic.DeepEqual(before.Status.Capacity, after.Capacity) || !equality.Semantic.DeepEqual(before.Status.Allocatable, after.Allocatable) {
				t.Errorf("%s, %s: capacity or allocatable changed", input, stage.Stage)
			}
			if before.Status.NodeInfo != after.NodeInfo {
				t.Errorf("%s, %s: nodeInfo changed (-before +after):\n%s", input, stage.Stage, cmp.Diff(before.Status.NodeInfo, after.NodeInfo))
			}
			if diff := cmp.Diff(before.Status.Conditions[4], after.Conditions[4]); diff != "" {
				t.Errorf("%s, %s: foreign condition changed (-before +after):\n%s", input, stage.Stage, diff)
			}
		}
	}
}

// TestStagesHasOneHeartbeat: of two matching stages KWOK plays one at random.
func TestStagesHasOneHeartbeat(t *testing.T) {
	stages, err := Stages()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-completed", "pod-delete"}
	if diff := cmp.Diff(want, names(stages)); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// TestStockKWOKReadsTheFiles loads every file as `kwok --config` does, and compares with what the simulator gets.
func TestStockKWOKReadsTheFiles(t *testing.T) {
	objects, err := config.Load(context.Background(), stageFiles(t)...)
	if err != nil {
		t.Fatal(err)
	}
	stock := config.FilterWithType[*internalversion.Stage](objects)
	if diff := cmp.Diff(allStages(t), stock); diff != "" {
		t.Errorf("stages (-embedded +stock):\n%s", diff)
	}
}

func TestKustomizationListsTheStages(t *testing.T) {
	data, err := os.ReadFile("kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var kustomization struct {
		Resources []string `json:"resources"`
	}
	if err := yaml.Unmarshal(data, &kustomization); err != nil {
		t.Fatal(err)
	}
	stages, err := Stages()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range names(stages) {
		want = append(want, name+".yaml")
	}
	if diff := cmp.Diff(want, kustomization.Resources); diff != "" {
		t.Errorf("kustomization.yaml resources (-want +got):\n%s", diff)
	}
}

// allStages returns both heartbeats beside the other stages, sorted by name as their files are.
func allStages(t testing.TB) []*internalversion.Stage {
	t.Helper()
	var stages []*internalversion.Stage
	for _, file := range stageFiles(t) {
		stage, err := load(file)
		if err != nil {
			t.Fatal(err)
		}
		if stage.Name+".yaml" != file {
			t.Errorf("%s holds the stage %s", file, stage.Name)
		}
		stages = append(stages, stage)
	}
	return stages
}

func stageFiles(t testing.TB) []string {
	t.Helper()
	files, err := fs.Glob(FS, "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stage files: %v", err)
	}
	return files
}

func names(stages []*internalversion.Stage) []string {
	var names []string
	for _, stage := range stages {
		names = append(names, stage.Name)
	}
	return names
}

func readObject(t *testing.T, file string) runtime.Object {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return object
}

// play returns what each stage that matches the object would do to it.
func play(t *testing.T, object runtime.Object) []played {
	t.Helper()
	event, stages := match(t, object)
	result := []played{}
	for _, stage := range stages {
		p := played{Stage: stage.Name()}
		delay, _, err := stage.DelayRangePossible(t.Context(), event, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range delay {
			p.Delay = append(p.Delay, d.String())
		}
		var patch *lifecycle.Patch
		patch, p.Delete = doSteps(t, stage, object)
		if patch != nil {
			p.Status = patchedStatus(t, object, patch)
		}
		result = append(result, p)
	}
	return result
}

// patchOf returns the patch that a stage makes of an object that it matches.
func patchOf(t testing.TB, name string, object runtime.Object) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	_, stages := match(t, object)
	for _, stage := range stages {
		if stage.Name() == name {
			patch, _ := doSteps(t, stage, object)
			return patch.Data
		}
	}
	t.Fatalf("%s does not match %v", name, object)
	return nil
}

// match returns the stages for an object as KWOK's controllers find them.
func match(t testing.TB, object runtime.Object) (*lifecycle.Event, []*lifecycle.Stage) {
	t.Helper()
	meta := object.(metav1.Object)
	stages := slices.DeleteFunc(allStages(t), func(s *internalversion.Stage) bool {
		return s.Spec.ResourceRef.Kind != object.GetObjectKind().GroupVersionKind().Kind
	})
	cycle, err := lifecycle.NewLifecycle(stages)
	if err != nil {
		t.Fatal(err)
	}
	event := &lifecycle.Event{Labels: meta.GetLabels(), Annotations: meta.GetAnnotations(), Data: object}
	matching, err := cycle.ListAllPossible(context.Background(), event)
	if err != nil {
		t.Fatal(err)
	}
	return event, matching
}

// doSteps plays a stage; ours make one patch or delete the object, nothing else.
func doSteps(t testing.TB, stage *lifecycle.Stage, object runtime.Object) (patch *lifecycle.Patch, deleted bool) {
	t.Helper()
	_, err := stage.DoSteps(0, object.(metav1.Object).GetFinalizers(), object, gotpl.NewRenderer(functions),
		func(e *internalversion.StageEvent) error {
			t.Errorf("%s sends an event: %v", stage.Name(), e)
			return nil
		},
		func() error { deleted = true; return nil },
		func(p *lifecycle.Patch) error { patch = p; return nil },
		func(*lifecycle.Apply) error { t.Errorf("%s applies an object", stage.Name()); return nil },
	)
	if err != nil {
		t.Fatalf("%s: %v", stage.Name(), err)
	}
	return patch, deleted
}

// patchedStatus does what the API server does with a patch of the status subresource, and holds the patch against its precondition.
func patchedStatus(t *testing.T, object runtime.Object, patch *lifecycle.Patch) any {
	t.Helper()
	if patch.Type != types.StrategicMergePatchType || patch.Subresource != "status" {
		t.Errorf("patch is %q of %q, want a strategic merge patch of the status", patch.Type, patch.Subresource)
	}
	var precondition metav1.PartialObjectMetadata
	if err := json.Unmarshal(patch.Data, &precondition); err != nil {
		t.Fatal(err)
	}
	if got, want := precondition.ResourceVersion, object.(metav1.Object).GetResourceVersion(); got != want {
		t.Errorf("patch has resourceVersion %q, want that of the object it was made from, %q", got, want)
	}
	original, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := strategicpatch.StrategicMergePatch(original, patch.Data, object)
	if err != nil {
		t.Fatal(err)
	}
	switch object.(type) {
	case *corev1.Node:
		var node corev1.Node
		strictly(t, merged, &node)
		return node.Status
	case *corev1.Pod:
		var pod corev1.Pod
		strictly(t, merged, &pod)
		return pod.Status
	}
	t.Fatalf("no stage is for %T", object)
	return nil
}

func strictly(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("patched object: %v", err)
	}
}
