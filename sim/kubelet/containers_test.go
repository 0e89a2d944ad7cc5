package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	criapi "k8s.io/cri-api/pkg/apis"
	crilogs "k8s.io/cri-client/pkg/logs"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// programs gives a program to the containers of some names.
func programs(byName map[string]Program) func(*corev1.Pod, *corev1.Container) Program {
	return func(_ *corev1.Pod, c *corev1.Container) Program { return byName[c.Name] }
}

// withInits is a pod with init containers.
func withInits(pod *corev1.Pod, names ...string) *corev1.Pod {
	for _, name := range names {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: name, Image: "registry.example.com/" + name + ":v1"})
	}
	return pod
}

func TestInitContainersRunInOrder(t *testing.T) {
	var order []string
	step := func(name string) Program {
		return func(ctx context.Context, c ContainerContext) error {
			order = append(order, fmt.Sprintf("%s starts on %s", name, c.Node))
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
			}
			order = append(order, name+" ends")
			return nil
		}
	}
	config := Config{Programs: programs(map[string]Program{"one": step("one"), "three": step("three")})}
	inCluster(t, config, func(c *cluster) {
		c.run(newMachine("n0"))
		c.bind(withInits(newPod("web", "n0", "1"), "one", "two", "three"))
		c.wait(15 * time.Second)
		c.isGolden("initializing-status.yaml", c.pod("default", "web").Status)
		c.wait(10 * time.Second)
		same(c, "order", order, []string{"one starts on n0", "one ends", "three starts on n0", "three ends"})
		c.isInitialized("web", corev1.ConditionTrue)
		same(c, "phase, which KWOK changes", c.pod("default", "web").Status.Phase, corev1.PodPending)
	})
}

func TestFailingInitContainerIsRestarted(t *testing.T) {
	var starts []time.Duration
	var c *cluster
	fail := func(_ context.Context, _ ContainerContext) error {
		starts = append(starts, time.Since(c.start))
		if len(starts) == 5 {
			return nil
		}
		return errors.New("no API server")
	}
	inCluster(t, Config{Programs: programs(map[string]Program{"one": fail})}, func(inner *cluster) {
		c = inner
		c.run(newMachine("n0"))
		c.until(100 * time.Second)
		c.bind(withInits(newPod("web", "n0", "1"), "one"))
		c.until(115 * time.Second)
		c.isGolden("backoff-status.yaml", c.pod("default", "web").Status.InitContainerStatuses)
		c.isInitialized("web", corev1.ConditionFalse)
		c.until(200 * time.Second)
		same(c, "starts", starts, milliseconds(100_000, 101_000, 111_000, 131_000, 171_000))
		c.isInitialized("web", corev1.ConditionTrue)
	})
}

func TestFailingInitContainerFailsThePod(t *testing.T) {
	fail := func(context.Context, ContainerContext) error { return errors.New("broken") }
	inCluster(t, Config{Programs: programs(map[string]Program{"one": fail})}, func(c *cluster) {
		c.run(newMachine("n0"))
		pod := withInits(newPod("web", "n0", "3"), "one")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		c.bind(pod)
		c.wait(time.Minute)
		same(c, "phase", c.pod("default", "web").Status.Phase, corev1.PodFailed)
		c.bind(newPod("next", "n0", "3"))
		same(c, "it no longer counts", len(c.recorded(trace.PodRejected)), 0)
	})
}

func TestProgramEndsWithItsPodOrItsKubelet(t *testing.T) {
	ended := map[string]time.Duration{}
	var c *cluster
	wait := func(ctx context.Context, surroundings ContainerContext) error {
		<-ctx.Done()
		ended[surroundings.Pod.Name] = time.Since(c.start)
		return ctx.Err()
	}
	inCluster(t, Config{Programs: programs(map[string]Program{"one": wait})}, func(inner *cluster) {
		c = inner
		c.run(newMachine("n0"))
		for _, name := range []string{"deleted", "terminating", "stopped"} {
			c.bind(withInits(newPod(name, "n0", "1"), "one"))
		}
		c.until(10 * time.Second)
		c.deletePod("default", "deleted")
		c.until(20 * time.Second)
		c.change("default", "terminating", func(p *corev1.Pod) {
			now := c.pod("default", "stopped").CreationTimestamp
			p.DeletionTimestamp, p.Finalizers = &now, []string{"example.com/wait"}
		})
		c.until(30 * time.Second)
		c.kubelets.Stop("n0")
		c.wait(time.Second)
		same(c, "ends", ended, map[string]time.Duration{"deleted": 10 * time.Second, "terminating": 20 * time.Second, "stopped": 30 * time.Second})
	})
}

// A reboot runs the init containers again.
func TestRebootRerunsInitContainers(t *testing.T) {
	runs := 0
	check := func(context.Context, ContainerContext) error {
		runs++
		time.Sleep(5 * time.Second)
		return nil
	}
	inCluster(t, Config{Programs: programs(map[string]Program{"one": check})}, func(c *cluster) {
		c.run(newMachine("n0"))
		c.bind(withInits(newPod("check", "n0", "1"), "one"))
		c.wait(10 * time.Second)
		c.change("default", "check", func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }) // as KWOK does
		started := c.pod("default", "check").Status.StartTime
		c.kubelets.Stop("n0")
		c.wait(10 * time.Second)
		if err := c.kubelets.Restart("n0"); err != nil {
			c.Fatal(err)
		}
		c.wait(4 * time.Second)
		c.isInitialized("check", corev1.ConditionFalse)
		same(c, "phase while it runs again", c.pod("default", "check").Status.Phase, corev1.PodPending)
		c.wait(10 * time.Second)
		c.isInitialized("check", corev1.ConditionTrue)
		same(c, "runs", runs, 2)
		same(c, "start time", c.pod("default", "check").Status.StartTime, started)
	})
}

func TestProgramSeesTheFolderAndWritesALog(t *testing.T) {
	dir := t.TempDir()
	list := func(_ context.Context, c ContainerContext) error {
		for range 2 {
			files, err := fs.Glob(c.Manifests, "*")
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Log, "files: %v\nand ", files)
			fmt.Fprintln(c.Log, "more")
			time.Sleep(10 * time.Second)
		}
		return nil
	}
	inCluster(t, Config{LogDir: dir, Programs: programs(map[string]Program{"one": list})}, func(c *cluster) {
		c.run(newMachine("n0", manifest("a", "1")))
		pod := c.bind(withInits(newPod("check", "n0", "1"), "one"))
		c.wait(time.Second)
		if err := c.kubelets.PutStaticPod("n0", "late.yaml", []byte(manifest("late", "1"))); err != nil {
			c.Fatal(err)
		}
		c.wait(time.Minute)
		c.isInitialized("check", corev1.ConditionTrue)

		path := LogFile(dir, pod, "one")
		same(c, "path", path, filepath.Join(dir, "default_check_"+string(pod.UID), "one.log"))
		var stdout, stderr bytes.Buffer
		if err := crilogs.ReadLogs(c.Context(), path, "", &crilogs.LogOptions{}, noRuntime{}, &stdout, &stderr); err != nil {
			c.Fatal(err)
		}
		same(c, "log", stdout.String()+stderr.String(), "files: [0.yaml]\nand more\nfiles: [0.yaml late.yaml]\nand more\n")
	})
}

// noRuntime is never asked, as long as a log is not followed.
type noRuntime struct{ criapi.RuntimeService }

func TestLogThatCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	nothing := func(context.Context, ContainerContext) error { return nil }
	inCluster(t, Config{LogDir: dir, Programs: programs(map[string]Program{"one": nothing})}, func(c *cluster) {
		c.run(newMachine("n0"))
		c.bind(withInits(newPod("check", "n0", "1"), "one"))
		c.wait(500 * time.Millisecond)
		c.isInitialized("check", corev1.ConditionFalse)
		if terminated := c.pod("default", "check").Status.InitContainerStatuses[0].State.Terminated; terminated == nil || terminated.ExitCode != 1 {
			c.Errorf("got state %v, want a failure that names the log", terminated)
		}
	})
}

func (c *cluster) isInitialized(name string, want corev1.ConditionStatus) {
	c.Helper()
	for _, condition := range c.pod("default", name).Status.Conditions {
		if condition.Type == corev1.PodInitialized {
			if condition.Status != want {
				c.Errorf("got Initialized=%s for pod %s, want %s", condition.Status, name, want)
			}
			return
		}
	}
	c.Errorf("pod %s has no condition Initialized", name)
}
