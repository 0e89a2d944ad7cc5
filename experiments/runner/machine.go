package runner

import (
	"runtime"
	"runtime/debug"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/mem"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// Version is mirrorgap's own, set by the build (-ldflags -X).
var Version = "devel"

// modules are the parts whose versions a result depends on, by the name that a reader knows them by.
var modules = map[string]string{
	"k8s.io/kubernetes":              "kubernetes",
	"go.etcd.io/etcd/server/v3":      "etcd",
	"sigs.k8s.io/kwok":               "kwok",
	"sigs.k8s.io/controller-runtime": "controller-runtime",
	"gonum.org/v1/gonum":             "gonum",
}

// Versions lists what the binary was built from.
func Versions() map[string]string {
	versions := map[string]string{"mirrorgap": Version, "go": runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, dep := range info.Deps {
		if name, ok := modules[dep.Path]; ok {
			versions[name] = dep.Version
		}
	}
	return versions
}

// Machine describes where this program runs; what cannot be found out stays empty.
func Machine() trace.Machine {
	m := trace.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU()}
	if infos, err := cpu.Info(); err == nil && len(infos) > 0 {
		m.CPUModel = infos[0].ModelName
	}
	if memory, err := mem.VirtualMemory(); err == nil {
		m.MemoryBytes = memory.Total
	}
	return m
}
