package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/experiments/library"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// parse parses an experiment's spec; the rest is filled in.
func parse(spec string) (*experiments.Experiment, error) {
	return experiments.Parse("test.yaml", []byte("apiVersion: mirrorgap.dev/v1alpha1\nkind: Experiment\nmetadata: {name: test}\nspec:\n"+spec), nil)
}

func mustParse(t *testing.T, spec string) *experiments.Experiment {
	t.Helper()
	e, err := parse(spec)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

const oneArm = "  arms: [{name: ungated}]\n"

// TestCheckAgreesWithTheLibrary: no experiment that comes with the program is refused.
func TestCheckAgreesWithTheLibrary(t *testing.T) {
	for _, name := range library.List() {
		e, err := library.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCheck: the kubelet and the scheduler have the last word about what is meant for them, and everything is reported at once with its field.
func TestCheck(t *testing.T) {
	const bad = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {restartPolicy: Sometimes, containers: [{name: c, image: i}]}}`
	const good = `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}`
	group := func(rest string) string {
		return "  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1, " + rest + "}]\n" + oneArm
	}
	flags := func(flag string) string { return "  controlPlane: {apiServerFlags: {" + flag + "}}\n" + group("") }
	workload := func(generate string) string { return "  workloads: [{name: w, generate: " + generate + "}]\n" }
	scheduler := func(config string) string {
		return "  controlPlane: {scheduler: {config: {apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration" + config + "}}}\n" + group("")
	}
	for name, c := range map[string]struct {
		spec string
		want []string // nothing: it is accepted
	}{
		"a good static pod":                    {group("staticPods: [{manifest: " + good + "}]"), nil},
		"one that the kubelet refuses":         {group("staticPods: [{manifest: " + good + "}, {fileName: q.yaml, manifest: " + strings.Replace(bad, "name: p", "name: q", 1) + "}]"), []string{"spec.nodeGroups[0].staticPods[1]: a kubelet refuses this manifest", "restartPolicy"}},
		"one that it is meant to refuse":       {group("staticPods: [{fileName: p.yaml, invalid: true, manifest: " + bad + "}]"), nil},
		"no YAML at all, as meant":             {group(`staticPods: [{fileName: p.yaml, invalid: true, manifest: "{{ template"}]`), nil},
		"one that it does not refuse":          {group("staticPods: [{fileName: p.yaml, invalid: true, manifest: " + good + "}]"), []string{"spec.nodeGroups[0].staticPods[0]: a kubelet accepts this manifest"}},
		"one of an action":                     {group("actions: [{at: 1s, removeStaticPod: p.yaml}, {at: 1s, putStaticPod: {manifest: " + bad + "}}]"), []string{"spec.nodeGroups[0].actions[1].putStaticPod: a kubelet refuses"}},
		"a good scheduler configuration":       {scheduler(", percentageOfNodesToScore: 10"), nil},
		"a field of a plugin's arguments":      {scheduler(", profiles: [{pluginConfig: [{name: NodeAffinity, args: {addedAfinity: {}}}]}]"), []string{"spec.controlPlane.scheduler.config: ", `unknown field "addedAfinity"`}},
		"a value that it refuses":              {scheduler(", parallelism: -1"), []string{"spec.controlPlane.scheduler.config: ", "parallelism"}},
		"a plugin that does not exist":         {scheduler(", profiles: [{plugins: {score: {enabled: [{name: NoSuchPlugin}]}}}]"), []string{"spec.controlPlane.scheduler.config: ", "NoSuchPlugin"}},
		"another version of its own API":       {strings.Replace(scheduler(""), "k8s.io/v1,", "k8s.io/v1beta3,", 1), []string{"spec.controlPlane.scheduler.config: ", "v1beta3"}},
		"a workload that the API server takes": {group("") + workload("{kind: Job, requests: {cpu: 1}}, replicas: 1"), nil},
		"a manifest that it refuses": {group("") + "  workloads: [{name: w, manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c, image: i}]}}}}}]\n",
			[]string{"spec.workloads[0]: the API server refuses its manifest", "spec.template.metadata.labels"}},
		"a pod that restarts never in a Deployment": {group("") + "  workloads: [{name: w, manifest: {apiVersion: apps/v1, kind: Deployment, metadata: {name: w}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}]\n",
			[]string{"spec.workloads[0]: the API server refuses its manifest", "restartPolicy"}},
		"a flag of kube-apiserver":         {flags("event-ttl: 2h"), nil},
		"one that it does not have":        {flags("no-such-flag: x"), []string{"spec.controlPlane.apiServerFlags[no-such-flag]: ", "no such flag"}},
		"one with a value that it refuses": {flags("event-ttl: soon"), []string{"spec.controlPlane.apiServerFlags[event-ttl]: ", "soon"}},
		"everything at once":               {strings.Replace(scheduler(", parallelism: -1"), "initial: 1, ", "initial: 1, staticPods: [{manifest: "+bad+"}]", 1), []string{"scheduler.config", "staticPods[0]"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := Check(mustParse(t, c.spec))
			if len(c.want) == 0 {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var bad *experiments.BadInput
			if !errors.As(err, &bad) {
				t.Fatalf("got %v, want a BadInput", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got\n%v\nwant it to say %q", err, want)
				}
			}
		})
	}
}

func smallExperiment(t *testing.T) *experiments.Experiment {
	t.Helper()
	return mustParse(t, "  nodeGroups: [{name: pool, capacity: {cpu: 4, memory: 8Gi}, initial: 1}]\n"+oneArm)
}

func TestPrepare(t *testing.T) {
	e := smallExperiment(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := prepare(e, dir); err != nil {
		t.Fatal(err)
	}
	again, err := experiments.Load(filepath.Join(dir, ExperimentFile))
	if err != nil {
		t.Fatalf("the experiment in the results folder cannot be run again: %v", err)
	}
	if again.Metadata.Name != "test" || again.Spec.NodeGroups[0].Initial != 1 {
		t.Errorf("the experiment in the results folder is %+v", again)
	}
	if err := prepare(e, t.TempDir()); err != nil {
		t.Errorf("an empty folder is refused: %v", err)
	}
}

// TestBadFolder: what is wrong with the results folder is the user's to mend, and is found before anything is started.
func TestBadFolder(t *testing.T) {
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		used:                                    "is in use",
		filepath.Join(used, "notes.txt"):        "not a directory",
		filepath.Join(used, "notes.txt", "sub"): "not a directory",
	} {
		_, err := Run(t.Context(), smallExperiment(t), Options{Dir: dir, Binary: "/nonexistent"})
		var bad *experiments.BadInput
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a BadInput that says %q", dir, err, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(used, "notes.txt")); err != nil || string(data) != "mine" {
		t.Errorf("the file in the folder is now %q (%v)", data, err)
	}
}

// TestUnstartableControlPlane: the run fails, and its trace says so.
func TestUnstartableControlPlane(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	summary, err := Run(t.Context(), smallExperiment(t), Options{Dir: dir, Binary: "/nonexistent"})
	if err == nil || !strings.Contains(err.Error(), "start control plane") || !strings.Contains(err.Error(), "arm ungated, seed 1") {
		t.Errorf("got %v, want an error about the start of the control plane in arm ungated", err)
	}
	if summary == nil || len(summary.Arms) != 1 || summary.Arms[0].Runs[0].End != trace.EndError || summary.Arms[0].Runs[0].Conclusive {
		t.Errorf("the summary is %+v", summary)
	}
}

func TestEnding(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	died := &diedError{"control plane", &live.DiedError{Server: "etcd"}}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"settled":                           {t.Context(), nil, trace.EndSettled},
		"time limit":                        {t.Context(), errTimeLimit, trace.EndTimeLimit},
		"time limit, and a failure to stop": {t.Context(), errors.Join(errTimeLimit, errors.New("stop control plane")), trace.EndTimeLimit},
		"interrupted":                       {interrupted, context.Canceled, trace.EndInterrupted},
		"interrupted after it settled":      {interrupted, nil, trace.EndSettled},
		"a component died":                  {t.Context(), died, trace.EndError},
		"an operation failed":               {t.Context(), fmt.Errorf("create workload: %w", os.ErrPermission), trace.EndError},
	} {
		e := ending(c.ctx, c.err)
		if e.Kind != trace.RunEnded || e.Source != trace.SourceRun || e.Reason != c.want {
			t.Errorf("%s: the trace ends with %+v, want %s", name, e, c.want)
		}
		if (c.err == nil) != (e.Message == "") || c.err != nil && e.Message != c.err.Error() {
			t.Errorf("%s: its message is %q", name, e.Message)
		}
	}
}
