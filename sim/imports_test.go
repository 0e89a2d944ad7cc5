package sim_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mirrorgap/mirrorgap/"

// rule says what packages must not depend on, directly or through others. Paths without a dot in their first element are the project's own; one that
// ends in /... stands for the packages below it as well.
type rule struct {
	packages, except []string
	forbidden        []string
	// allowed are exceptions from forbidden.
	allowed []string
	why     string
}

// everything of others: their paths begin with a host, which has a dot.
const thirdParty = "*.*/..."

// rules are those of docs/architecture.md.
var rules = []rule{
	{
		packages: []string{"..."},
		except: []string{
			"sim/engine/live/...", "sim/control/...", "sim/kubelet/...", "sim/fleet/...", "sim/gate/...", "experiments/runner/...", "cmd/...",
		},
		forbidden: []string{"k8s.io/kubernetes/..."},
		why:       "only what runs the control plane links it; the others build and test in seconds",
	},
	{
		packages:  []string{"sim/trace"},
		forbidden: []string{"...", thirdParty},
		why:       "a trace is read with the standard library alone",
	},
	{
		packages:  []string{"results/..."},
		forbidden: []string{"sim/...", "experiments/...", "controllers/...", "checker/...", "kwokconfigs/...", "k8s.io/...", "sigs.k8s.io/..."},
		allowed:   []string{"sim/trace"},
		why:       "a run is judged by its trace, wherever it was recorded",
	},
	{
		packages:  []string{"controllers/...", "checker/..."},
		forbidden: []string{"sim/...", "experiments/...", "results/...", "kwokconfigs/...", "cmd/...", "k8s.io/kubernetes/...", "sigs.k8s.io/kwok/..."},
		why:       "they ship to real clusters",
	},
	{
		packages:  []string{"sim/..."},
		forbidden: []string{"experiments/...", "results/...", "cmd/..."},
		why:       "a simulated cluster does not know what it is used for",
	},
	{
		packages: []string{"..."}, except: []string{"experiments/runner/...", "cmd/..."},
		forbidden: []string{"experiments/runner"},
		why:       "the runner knows all others, and only commands know it",
	},
}

// TestImports holds the import rules of docs/architecture.md.
func TestImports(t *testing.T) {
	packages := listPackages(t)
	for _, r := range rules {
		var judged int
		for _, p := range packages {
			if !matches(r.packages, p.ImportPath) || matches(r.except, p.ImportPath) {
				continue
			}
			judged++
			for _, dep := range p.Deps {
				if dep != p.ImportPath && matches(r.forbidden, dep) && !matches(r.allowed, dep) {
					t.Errorf("%s depends on %s, but %s (go mod why, or go list -deps, shows through what)", p.ImportPath, dep, r.why)
				}
			}
		}
		if judged == 0 {
			t.Errorf("no package is one of %v: the rule is about nothing", r.packages)
		}
	}
}

// TestNames: no package is called after what it is not about.
func TestNames(t *testing.T) {
	for _, p := range listPackages(t) {
		if slices.Contains([]string{"pkg", "util", "utils", "helpers", "common", "misc"}, path.Base(p.ImportPath)) {
			t.Errorf("%s: a package is called after what it does", p.ImportPath)
		}
	}
}

// goPackage is what go list tells of a package. Deps are all packages that it depends on, the standard library's included.
type goPackage struct {
	ImportPath string
	Deps       []string
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Deps", module+"...")
	var stderr bytes.Buffer
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// matches tells whether a package is one of patterns.
func matches(patterns []string, importPath string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		host, _, _ := strings.Cut(importPath, "/")
		if pattern == thirdParty {
			return strings.Contains(host, ".") && !strings.HasPrefix(importPath, module)
		}
		if first, _, _ := strings.Cut(pattern, "/"); !strings.Contains(strings.TrimSuffix(first, "..."), ".") {
			pattern = module + pattern
		}
		if root, below := strings.CutSuffix(pattern, "..."); below {
			return strings.HasPrefix(importPath+"/", root)
		}
		return importPath == pattern
	})
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"sim/trace", module + "sim/trace", true},
		{"sim/trace", module + "sim/trace/sub", false},
		{"sim/...", module + "sim", true},
		{"sim/...", module + "sim/trace", true},
		{"sim/...", module + "simulator", false},
		{"...", module + "results", true},
		{"...", "strings", false},
		{"k8s.io/kubernetes/...", "k8s.io/kubernetes/pkg/kubelet", true},
		{"k8s.io/kubernetes/...", "k8s.io/kubernetes", true},
		{"k8s.io/kubernetes/...", "k8s.io/api/core/v1", false},
		{thirdParty, "gonum.org/v1/gonum/stat", true},
		{thirdParty, "encoding/json", false},
		{thirdParty, module + "sim", false},
	} {
		if got := matches([]string{c.pattern}, c.path); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.path, got)
		}
	}
}
