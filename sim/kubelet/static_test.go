package kubelet

import (
	"io/fs"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"

	"github.com/mirrorgap/mirrorgap/sim/random"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func TestMirrorIsRetried(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.refuse("create", "pods", 2)
		c.boot(newMachine("n0", manifest("agent", "500m")))
		c.until(200 * time.Second)
		same(c, "mirror creation", c.times("create", "pods", "agent-n0"), milliseconds(15_100, 90_100, 165_100))
		same(c, "trace", c.kinds(trace.KubeletStarted, trace.StaticPodStarted),
			[]string{"MirrorFailed kube-system/agent-n0", "MirrorFailed kube-system/agent-n0"})
		if got := c.recorded(trace.MirrorFailed)[0].Message; !strings.Contains(got, "no PriorityClass") {
			c.Errorf("got message %q, want the API server's", got)
		}
	})
}

func TestMirrorDelays(t *testing.T) {
	inCluster(t, Config{Seed: 7}, func(c *cluster) {
		own := newMachine("own", manifest("a", "1"), manifest("b", "1"))
		own.StaticPods[1].MirrorDelay = random.Constant(3 * time.Second)
		c.boot(own)
		drawn := newMachine("drawn", manifest("a", "1"), manifest("b", "1"))
		drawn.Behaviour.MirrorDelay = random.Uniform(60*time.Second, 90*time.Second)
		c.boot(drawn)
		c.until(2 * time.Minute)
		same(c, "the kubelet's delay", c.times("create", "pods", "a-own"), milliseconds(15_100))
		same(c, "the static pod's own delay", c.times("create", "pods", "b-own"), milliseconds(3_100))
		a, b := c.times("create", "pods", "a-drawn"), c.times("create", "pods", "b-drawn")
		if len(a) != 1 || len(b) != 1 || a[0] == b[0] {
			c.Fatalf("each static pod draws for itself: got %v and %v", a, b)
		}
		for _, at := range []time.Duration{a[0], b[0]} {
			if at < 60_100*time.Millisecond || at > 90_100*time.Millisecond {
				c.Errorf("got a mirror after %v, want 60 to 90 s after the registration", at)
			}
		}
		want := random.Seed(7).Stream("kubelet/mirror", "drawn/kube-system/a-drawn")
		same(c, "the draw", a[0], 100*time.Millisecond+drawn.Behaviour.MirrorDelay.Sample(want))
	})
}

// A mirror that is deleted with grace period 0 is gone until the static pod's next sync.
func TestMirrorComesBack(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.boot(newMachine("n0", manifest("agent", "500m")))
		c.until(30 * time.Second)
		old := c.pod("kube-system", "agent-n0").UID
		c.deletePod("kube-system", "agent-n0")
		c.until(69 * time.Second)
		if c.hasPod("kube-system", "agent-n0") {
			c.Error("the mirror came back too early")
		}
		c.until(80 * time.Second)
		same(c, "mirror creation", c.times("create", "pods", "agent-n0"), milliseconds(15_100, 70_000))
		mirror := c.pod("kube-system", "agent-n0")
		if mirror.UID == old {
			c.Error("the mirror has the old UID")
		}
		if mirror.Status.StartTime == nil {
			c.Error("the new mirror did not get the static pod's status")
		}
	})
}

// A mirror that goes before the kubelet sees the API comes back as well.
func TestMirrorThatWasNeverSeenComesBack(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		m := newMachine("n0", manifest("agent", "500m"))
		m.Established = true
		c.boot(m)
		c.until(500 * time.Millisecond)
		c.deletePod("kube-system", "agent-n0")
		c.until(time.Minute)
		same(c, "mirror creation", c.times("create", "pods", "agent-n0"), milliseconds(100, 41_000))
	})
}

// A mirror that is deleted gracefully stays, terminating, until the next sync deletes and creates it in one go.
func TestTerminatingMirrorIsReplaced(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.boot(newMachine("n0", manifest("agent", "500m")))
		c.until(30 * time.Second)
		old := c.pod("kube-system", "agent-n0").UID
		c.change("kube-system", "agent-n0", func(p *corev1.Pod) {
			now := metav1.Now()
			p.DeletionTimestamp = &now
		})
		c.until(69 * time.Second)
		same(c, "UID before the sync", c.pod("kube-system", "agent-n0").UID, old)
		c.until(71 * time.Second)
		same(c, "deletion", c.times("delete", "pods", "agent-n0"), milliseconds(70_000))
		same(c, "creation", c.times("create", "pods", "agent-n0"), milliseconds(15_100, 70_000))
		if c.pod("kube-system", "agent-n0").UID == old {
			c.Error("the mirror was not replaced")
		}
	})
}

// A mirror pod of the wrong hash, which somebody else made, is replaced as soon as the kubelet sees it; one without a static pod goes at the next
// housekeeping.
func TestForeignMirrors(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0", manifest("agent", "500m")))
		for _, name := range []string{"agent-n0", "stranger-n0"} {
			pod := newPod(name, "n0", "1")
			pod.Namespace = "kube-system"
			pod.Annotations = map[string]string{kubetypes.ConfigMirrorAnnotationKey: "wrong"}
			c.bind(pod)
		}
		hash := c.recorded(trace.StaticPodStarted)[0].UID
		same(c, "hash of the mirror", c.pod("kube-system", "agent-n0").Annotations[kubetypes.ConfigMirrorAnnotationKey], hash)
		if !c.hasPod("kube-system", "stranger-n0") {
			c.Error("the orphan went before the housekeeping")
		}
		c.until(4 * time.Second)
		if c.hasPod("kube-system", "stranger-n0") {
			c.Error("the orphan is still there after the housekeeping")
		}
	})
}

func TestManifestsWhileTheNodeRuns(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0", manifest("agent", "500m")))
		put := func(file, content string) {
			if err := c.kubelets.PutStaticPod("n0", file, []byte(content)); err != nil {
				c.Fatal(err)
			}
			c.wait(0)
		}
		c.until(20 * time.Second)

		put("late.yaml", manifest("late", "1")) // added: the mirror follows at once
		c.until(30 * time.Second)
		same(c, "mirror of the late one", c.times("create", "pods", "late-n0"), milliseconds(20_000))

		put("late.yaml", manifest("late", "2")) // changed: old one out, new one in, mirror replaced
		c.until(40 * time.Second)
		same(c, "mirror of the changed one", c.times("create", "pods", "late-n0"), milliseconds(20_000, 30_000))
		same(c, "cpu in the mirror", c.pod("kube-system", "late-n0").Spec.Containers[0].Resources.Requests.Cpu().String(), "2")

		put("late.yaml", manifest("late", "2")) // the same: nothing happens
		c.until(41 * time.Second)

		if err := c.kubelets.RemoveStaticPod("n0", "late.yaml"); err != nil { // removed: the mirror goes at the next housekeeping
			c.Fatal(err)
		}
		c.until(41500 * time.Millisecond)
		if !c.hasPod("kube-system", "late-n0") {
			c.Error("the mirror went before the housekeeping")
		}
		c.until(42500 * time.Millisecond)
		if c.hasPod("kube-system", "late-n0") {
			c.Error("the mirror is still there after the housekeeping")
		}
		c.until(5 * time.Minute)
		same(c, "trace", c.kinds(trace.KubeletStarted), []string{
			"StaticPodStarted kube-system/agent-n0",
			"StaticPodStarted kube-system/late-n0",
			"StaticPodStopped kube-system/late-n0", "StaticPodStarted kube-system/late-n0",
			"StaticPodStopped kube-system/late-n0",
		})
		started := c.recorded(trace.StaticPodStarted)
		if started[1].UID == started[2].UID {
			c.Error("the changed manifest has the old hash")
		}
		if c.hasPod("kube-system", "late-n0") {
			c.Error("the mirror came back")
		}
	})
}

// A manifest that changes while the mirror of its old content is being created: the new mirror is refused first, and replaces the old one as soon as
// the kubelet sees that.
func TestManifestThatChangesTooSoon(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0"))
		c.client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			time.Sleep(time.Second) // nobody else calls the API meanwhile
			return false, nil, nil
		})
		c.until(10 * time.Second)
		for _, cpu := range []string{"1", "2"} {
			if err := c.kubelets.PutStaticPod("n0", "late.yaml", []byte(manifest("late", cpu))); err != nil {
				c.Fatal(err)
			}
			c.wait(500 * time.Millisecond)
		}
		c.until(14 * time.Second)
		same(c, "trace", c.kinds(trace.KubeletStarted), []string{
			"StaticPodStarted kube-system/late-n0",
			"StaticPodStopped kube-system/late-n0", "StaticPodStarted kube-system/late-n0", "MirrorFailed kube-system/late-n0",
		})
		same(c, "cpu in the mirror", c.pod("kube-system", "late-n0").Spec.Containers[0].Resources.Requests.Cpu().String(), "2")
	})
}

func TestInvalidManifest(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		m := newMachine("n0", manifest("agent", "500m"),
			"apiVersion: v1\nkind: Pod\nmetadata: {name: broken}\nspec: {containers: []}\n", "{", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
		m.StaticPods[2].FileName = ".hidden.yaml"
		c.boot(m)
		c.until(5 * time.Minute)
		if err := c.kubelets.PutStaticPod("n0", "more.yaml", []byte("kind: [")); err != nil {
			c.Fatal(err)
		}
		c.wait(time.Minute)
		same(c, "trace", c.kinds(), []string{
			"KubeletStarted", "StaticPodRefused default/broken-n0", "StaticPodRefused default/a-n0", "StaticPodStarted kube-system/agent-n0", "StaticPodRefused",
		})
		if got := c.recorded(trace.StaticPodRefused)[0].Message; !strings.Contains(got, "spec.containers: Required value") {
			c.Errorf("got message %q, want the kubelet's", got)
		}
		same(c, "mirrors", c.times("create", "pods", "broken-n0"), nil)
	})
}

// Of two files with a pod of the same name the last one counts.
func TestTwoFilesOfOneName(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.run(newMachine("n0", manifest("agent", "1"), manifest("agent", "2")))
		same(c, "static pods", c.kinds(trace.KubeletStarted), []string{"StaticPodStarted kube-system/agent-n0"})
		same(c, "requests", c.recorded(trace.StaticPodStarted)[0].Requests, trace.Resources{"cpu": 2000})
		if err := c.kubelets.RemoveStaticPod("n0", "1.yaml"); err != nil {
			c.Fatal(err)
		}
		c.wait(0)
		same(c, "requests of the other", c.recorded(trace.StaticPodStarted)[1].Requests, trace.Resources{"cpu": 1000})
	})
}

func TestReboot(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		c.boot(newMachine("n0", manifest("agent", "1"), manifest("old", "100m")))
		c.until(20 * time.Second)
		for _, name := range []string{"a", "b", "c"} {
			c.bind(newPod(name, "n0", "900m"))
		}
		c.wait(time.Second)
		for _, name := range []string{"a", "b", "c"} {
			c.change("default", name, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
		}
		mirror := c.pod("kube-system", "agent-n0").UID
		c.until(30 * time.Second)
		c.kubelets.Stop("n0")
		// While it is down, the disk changes, and nothing is written.
		if err := c.kubelets.RemoveStaticPod("n0", "1.yaml"); err != nil {
			c.Fatal(err)
		}
		if err := c.kubelets.PutStaticPod("n0", "new.yaml", []byte(manifest("new", "600m"))); err != nil {
			c.Fatal(err)
		}
		c.bind(newPod("meanwhile", "n0", "100m"))
		c.until(60 * time.Second)
		same(c, "phase while it is down", c.pod("default", "meanwhile").Status.StartTime, nil)
		if err := c.kubelets.Restart("n0"); err != nil {
			c.Fatal(err)
		}
		c.until(90 * time.Second)
		same(c, "trace", c.kinds()[6:], []string{
			"StaticPodStopped kube-system/agent-n0", "StaticPodStopped kube-system/old-n0", "KubeletStopped",
			"KubeletStarted", "StaticPodStarted kube-system/agent-n0", "StaticPodStarted kube-system/new-n0",
			"PodAdmitted default/a", "PodAdmitted default/b", "PodRejected default/c", "PodAdmitted default/meanwhile",
		})
		same(c, "the mirror stays", c.pod("kube-system", "agent-n0").UID, mirror)
		same(c, "mirror of the removed manifest", c.hasPod("kube-system", "old-n0"), false)
		same(c, "mirror of the new manifest", c.times("create", "pods", "new-n0"), milliseconds(75_100))
		same(c, "phases", []corev1.PodPhase{c.pod("default", "a").Status.Phase, c.pod("default", "c").Status.Phase},
			[]corev1.PodPhase{corev1.PodRunning, corev1.PodFailed})
	})
}

// A machine that returns under its old name, with a new Node, adopts the mirror that is still there: v1.37.2 does not look at its owner.
func TestReturnUnderTheSameName(t *testing.T) {
	inCluster(t, Config{}, func(c *cluster) {
		m := newMachine("n0", manifest("agent", "1"))
		m.Behaviour.MirrorDelay = random.Uniform(0, 20*time.Second)
		c.boot(m)
		c.until(30 * time.Second)
		first := c.times("create", "pods", "agent-n0")
		old := c.pod("kube-system", "agent-n0")
		c.kubelets.Stop("n0")
		if err := c.client.CoreV1().Nodes().Delete(c.Context(), "n0", metav1.DeleteOptions{}); err != nil {
			c.Fatal(err)
		}
		c.until(60 * time.Second)
		c.boot(m)
		c.until(120 * time.Second)
		node, err := c.client.CoreV1().Nodes().Get(c.Context(), "n0", metav1.GetOptions{})
		if err != nil {
			c.Fatal(err)
		}
		mirror := c.pod("kube-system", "agent-n0")
		same(c, "UID of the mirror", mirror.UID, old.UID)
		if mirror.OwnerReferences[0].UID == node.UID {
			c.Error("the mirror belongs to the new Node; v1.37.2 leaves it to the garbage collector")
		}
		same(c, "refused mirrors", len(c.recorded(trace.MirrorFailed)), 0)

		c.deletePod("kube-system", "agent-n0") // what the garbage collector does
		c.until(170 * time.Second)
		same(c, "owner of the new mirror", c.pod("kube-system", "agent-n0").OwnerReferences[0].UID, node.UID)

		// A third life, without a mirror: its delay is a new draw.
		c.kubelets.Stop("n0")
		c.deletePod("kube-system", "agent-n0")
		c.until(200 * time.Second)
		c.boot(m)
		c.until(230 * time.Second)
		times := c.times("create", "pods", "agent-n0")
		if last := times[len(times)-1] - 200*time.Second; last == first[0] {
			c.Errorf("the machine drew the delay %v again", last)
		}
	})
}

func TestValidateManifest(t *testing.T) {
	for _, tc := range []struct{ name, manifest, want string }{
		{"YAML", manifest("a", "1"), ""},
		{"JSON", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"i"}]}}`, ""},
		{"empty", "", "couldn't parse as pod"},
		{"no YAML", "{", "couldn't parse as pod"},
		{"another kind", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "couldn't parse as pod"},
		{"no name", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: i}]}\n", "name is needed for the pod"},
		{"no image", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}]}\n", "spec.containers[0].image: Required value"},
		{"a service account", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {serviceAccountName: a, containers: [{name: a, image: i}]}\n",
			"static pods may not reference serviceaccounts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := ValidateManifest([]byte(tc.manifest))
			if tc.want == "" {
				if err != nil {
					t.Errorf("got error %v, want none", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func FuzzValidateManifest(f *testing.F) {
	f.Add([]byte(manifest("a", "1")))
	f.Add([]byte("{"))
	f.Add([]byte("kind: Pod\nmetadata: {name: a, namespace: ../b}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if ValidateManifest(data) != nil {
			return
		}
		pod, err := decodeManifest(data, "pod.yaml", "node")
		if err != nil || pod.Name == "" || pod.UID == "" || pod.Spec.NodeName != "node" || !kubetypes.IsStaticPod(pod) {
			t.Errorf("a valid manifest made %v, %v", pod, err)
		}
	})
}

func TestFolderIsAFileSystem(t *testing.T) {
	f := newFolder(nil)
	f.put("b.yaml", []byte("b"))
	f.put("a.yaml", []byte("a"))
	entries, err := fs.ReadDir(f, ".")
	if err != nil || len(entries) != 2 || entries[0].Name() != "a.yaml" {
		t.Errorf("got %v, %v", entries, err)
	}
	f.remove("a.yaml")
	if _, err := fs.ReadFile(f, "a.yaml"); err == nil {
		t.Error("a removed file can be read")
	}
	if data, err := fs.ReadFile(f, "b.yaml"); err != nil || string(data) != "b" {
		t.Errorf("got %q, %v", data, err)
	}
}

// TestKubeletVersion holds the version that nodes report against the one that is built in.
func TestKubeletVersion(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.TrimSpace(string(out)) + "+mirrorgap"; KubeletVersion != want {
		t.Errorf("got %s, want %s", KubeletVersion, want)
	}
}
