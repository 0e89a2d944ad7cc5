package live

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// tools are the programs that the binary is when it is called by their name.
var tools = map[string]func(args []string){
	"etcd":           etcdmain.Main,
	"kube-apiserver": func([]string) { os.Exit(cli.Run(apiserver.NewAPIServerCommand())) },
	"kubectl":        func([]string) { kubectlutil.CheckErr(cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand())) },
}

// servers are the tools that are started by an engine and must not outlive it.
var servers = map[string]bool{"etcd": true, "kube-apiserver": true}

// DispatchTool makes the process etcd, kube-apiserver or kubectl when args[0] is a path of that name, and does not return then. Otherwise it returns at once.
// Every binary that uses the engine calls it first in main, before any flag is parsed: the engine starts the binary again under these names.
func DispatchTool(args []string) {
	name := filepath.Base(args[0])
	run, ok := tools[name]
	if !ok {
		return
	}
	if servers[name] {
		go exitWithParent(os.Getppid())
	}
	run(args)
	os.Exit(0)
}

// exitWithParent ends the process soon after its parent is gone: an engine that was killed cannot stop its servers itself.
func exitWithParent(parent int) {
	for range time.Tick(time.Second) {
		if os.Getppid() != parent {
			os.Exit(1)
		}
	}
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
