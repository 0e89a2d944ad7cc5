package workload

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/mirrorgap/mirrorgap/sim"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestObjects holds what is sent to the API server against golden files: testdata/<name>.workload.yaml → <name>.objects.yaml.
func TestObjects(t *testing.T) {
	inputs, err := filepath.Glob("testdata/*.workload.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no test cases in testdata (%v)", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".workload.yaml"), func(t *testing.T) {
			got := objectsYAML(t, readWorkload(t, input))
			golden := strings.TrimSuffix(input, ".workload.yaml") + ".objects.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("objects differ from %s; if that is right, run the test with -update (-want +got)\n%s", golden, diff)
			}
		})
	}
}

func readWorkload(t *testing.T, path string) sim.Workload {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return workload(t, string(data))
}

// workload decodes a workload and gives it its defaults.
func workload(t *testing.T, text string) sim.Workload {
	t.Helper()
	var w sim.Workload
	if err := yaml.UnmarshalStrict([]byte(text), &w); err != nil {
		t.Fatal(err)
	}
	c := sim.Cluster{Workloads: []sim.Workload{w}}
	sim.SetDefaults(&c)
	return c.Workloads[0]
}

func objectsYAML(t *testing.T, w sim.Workload) []byte {
	t.Helper()
	objects, err := Objects(w)
	if err != nil {
		t.Fatal(err)
	}
	var documents [][]byte
	for _, o := range objects {
		document, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, document)
	}
	return bytes.Join(documents, []byte("---\n"))
}

// TestObjectsLeaveTheWorkloadAlone: the same workload gives the same objects again, so an experiment's arms do not change one another.
func TestObjectsLeaveTheWorkloadAlone(t *testing.T) {
	w := readWorkload(t, "testdata/affinity.workload.yaml")
	before, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	first := objectsYAML(t, w)
	if diff := cmp.Diff(string(first), string(objectsYAML(t, w))); diff != "" {
		t.Errorf("the second time (-first +second)\n%s", diff)
	}
	after, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the workload changed (-before +after)\n%s", diff)
	}
}

func TestNoObjects(t *testing.T) {
	for text, want := range map[string]string{
		`{name: w, manifest: {apiVersion: v1, kind: Service, metadata: {name: s}}}`: "a workload must be a Pod",
		`{name: w, manifest: {apiVersion: v1, kind: PodList, items: []}}`:           "a workload must be a Pod",
		`{name: w, manifest: {apiVersion: v1, kind: Pod, spec: {nodeNam: x}}}`:      `unknown field "spec.nodeNam"`,
		`{name: w, manifest: [1]}`:                                                    "decode manifest",
		`{name: w, generate: {kind: CronJob, requests: {}}}`:                          `generate a "CronJob"`,
		`{name: w, manifest: {apiVersion: apps/v1beta1, kind: Deployment, spec: {}}}`: "apps/v1beta1",
	} {
		_, err := Objects(workload(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "workload w") {
			t.Errorf("%s: got %v, want an error about workload w that says %q", text, err, want)
		}
	}
}
