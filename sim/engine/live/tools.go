package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"

	kubelet "github.com/mirrorgap/mirrorgap/sim/kubelet/real"
)

// tools are the programs that the binary is when it is called by their name.
var tools = map[string]func(args []string){
	"etcd":           etcdmain.Main,
	"kube-apiserver": func([]string) { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	"kubelet":        kubelet.Main,
	"kubectl":        func([]string) { kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand())) },
}

// servers are the tools that are started by an engine and must not outlive it.
var servers = map[string]bool{"etcd": true, "kube-apiserver": true}

// DispatchTool makes the process etcd, kube-apiserver, kubelet or kubectl when args[0] is a path of that name, and does not return then. Otherwise it returns at once.
// Every binary that uses the engine calls it first in main, before any flag is parsed: the engine starts the binary again under these names.
func DispatchTool(args []string) {
	name := filepath.Base(args[0])
	run, ok := tools[name]
	if !ok {
		return
	}
	if servers[name] {
		clearEnvironment()
		go exitWithEngine(args[0], os.Getppid())
		go exitAtOnce()
	}
	run(args)
	os.Exit(0)
}

// clearEnvironment drops variables that are meant for another etcd on this machine: etcd takes each of its flags from one.
func clearEnvironment() {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "ETCD_") {
			_ = os.Unsetenv(name) // fails only for a name that cannot be one
		}
	}
}

// gcPercent is GOGC of a simulation's own process. With Go's 100 about a third of its CPU time went into collecting garbage when 10,000 pods
// started on 1,000 nodes (one CPU profile, 2 cores). etcd and kube-apiserver keep Go's default: with 200 everywhere all pods ran after 112 s instead
// of 118 s (one run each), for a kube-apiserver of 2.7 GB.
const gcPercent = 200

// TuneGC gives the calling process the garbage collection of a simulation, unless GOGC says otherwise. It is for after DispatchTool.
func TuneGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// exitWithEngine ends the process soon after its parent is gone, or the name it was called by: an engine that was killed cannot stop its servers
// itself, and one that gives up in mid-start removes their names.
func exitWithEngine(name string, parent int) {
	for range time.Tick(500 * time.Millisecond) {
		_, err := os.Lstat(name)
		if os.Getppid() != parent || errors.Is(err, fs.ErrNotExist) {
			os.Exit(1)
		}
	}
}

// exitAtOnce ends the process at the engine's SIGTERM. There is nothing to save, and kube-apiserver's own shutdown first waits for its requests,
// and for 20 s and more if its etcd has died.
func exitAtOnce() {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	<-stop
	os.Exit(0)
}

// linkTools fills dir with links of the tools' names to the binary exe, which is what envtest takes for its folder of downloaded binaries.
func linkTools(dir, exe string) error {
	for name := range tools {
		if err := os.Symlink(exe, filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("make %s callable: %w", name, err)
		}
	}
	return nil
}
