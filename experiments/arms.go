package experiments

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mirrorgap/mirrorgap/sim"
)

// settable are the parts of an experiment that an arm may change. The workloads are not among them: arms are compared under the same load.
var settable = []string{"spec.controlPlane", "spec.kubelet", "spec.nodeGroups", "spec.gate", "spec.apiFaults", "spec.autoscaler"}

// ClusterOf is the cluster of an arm: the experiment's, with what the arm changes.
func (e *Experiment) ClusterOf(arm Arm) *sim.Cluster {
	if arm.cluster != nil {
		return arm.cluster
	}
	return &e.Spec.Cluster
}

// resolveArms makes the cluster of each arm that changes fields. root is the experiment's tree after it was decoded, when everything is inline.
func (d *decoder) resolveArms(root *yaml.Node, e *Experiment) {
	for i := range e.Spec.Arms {
		arm := &e.Spec.Arms[i]
		if len(arm.Set) == 0 {
			continue
		}
		nodes := get(get(root, "spec"), "arms")
		path := field.NewPath("spec", "arms").Index(i).Child("set")
		changes := get(resolve(nodes.Content[i]), "set")
		found := len(d.problems)
		arm.cluster = d.changed(root, changes, path)
		if len(d.problems) > found {
			continue
		}
		if key, err := arm.resolveSet(); err != nil {
			d.report(d.file, changes, path.Key(key), "%v", err)
		}
	}
}

// changed is the cluster of an experiment with some changes, a map from paths to values. What is wrong with it, and not with the experiment itself, is
// reported where the change stands that is nearest to it.
func (d *decoder) changed(root, changes *yaml.Node, path *field.Path) *sim.Cluster {
	own := newDecoder(d.file, d.files)
	own.folders = d.folders
	p := &patcher{decoder: own, sweep: d.file}
	tree := deepCopy(root)
	for i := 0; i+1 < len(changes.Content); i += 2 {
		key := changes.Content[i]
		at := path.Key(key.Value)
		switch overlapping := aroundOf(changes, key.Value); {
		case !slices.ContainsFunc(settable, func(part string) bool { return within(key.Value, part) }):
			own.report(d.file, key, at, "an arm can change what is below %s", strings.Join(settable, ", "))
		case overlapping != "":
			own.report(d.file, key, at, "is within %s, which is set too", overlapping)
		default:
			p.set(tree, key, changes.Content[i+1], at)
		}
	}
	if len(own.problems) > 0 {
		d.problems = append(d.problems, own.problems...)
		return nil
	}
	var e Experiment
	own.decode(d.file, tree, reflect.ValueOf(&e).Elem(), nil)
	sim.SetDefaults(&e.Spec.Cluster)
	own.addErrors(e.Spec.Cluster.Validate(field.NewPath("spec")))
	d.reportChanged(own.problems, changes, path)
	return &e.Spec.Cluster
}

// aroundOf is another path that a path is within; empty if there is none.
func aroundOf(changes *yaml.Node, path string) string {
	for i := 0; i+1 < len(changes.Content); i += 2 {
		if other := changes.Content[i].Value; other != path && within(path, other) {
			return other
		}
	}
	return ""
}

// reportChanged reports problems of a changed experiment, except those that it has without the changes.
func (d *decoder) reportChanged(problems []Problem, changes *yaml.Node, path *field.Path) {
	for _, p := range problems {
		same := func(known Problem) bool { return known.Field == p.Field && known.Message == p.Message }
		if slices.ContainsFunc(d.problems, same) {
			continue
		}
		key := changes
		at := path
		for i := 0; i+1 < len(changes.Content); i += 2 {
			if c := changes.Content[i]; within(p.Field, c.Value) || within(c.Value, p.Field) {
				key, at = c, path.Key(c.Value)
				break
			}
		}
		d.report(d.file, key, at, "%s: %s", p.Field, p.Message)
	}
}

// resolveSet sets the changes of an arm to what has been read for them, so that they need no other file and no default. A change of spec.kubelet stands for
// the kubelets of all groups, which a resolved experiment has each in full. The error is about the change of the path that is returned.
func (a *Arm) resolveSet() (path string, err error) {
	data, err := toYAML(map[string]any{"spec": a.cluster})
	if err != nil {
		return "", err
	}
	root, problem := parseYAML("", data)
	if problem != nil {
		return "", errors.New(problem.Message)
	}
	resolved := map[string]json.RawMessage{}
	for _, path := range a.resolvedPaths() {
		n := lookup(root, path)
		if n == nil {
			return path, errors.New("is a field of which another one is made, such as the name of a file: set what is around it")
		}
		if resolved[path], err = toJSON(n); err != nil {
			return path, err
		}
	}
	a.Set = resolved
	return "", nil
}

// resolvedPaths are the paths that the arm's changes stand for in a resolved experiment. What a default may have been derived from is taken as a whole: a
// node group, a component of the control plane, and with spec.kubelet all node groups.
func (a *Arm) resolvedPaths() []string {
	var paths []string
	for path := range a.Set {
		switch whole := derivedFrom.FindString(path); {
		case within(path, "spec.kubelet"):
			paths = append(paths, "spec.kubelet", "spec.nodeGroups")
		case whole != "":
			paths = append(paths, whole)
		default:
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(slices.Clone(paths), func(path string) bool {
		return slices.ContainsFunc(paths, func(other string) bool { return other != path && within(path, other) })
	})
}

// derivedFrom matches the beginning of a path that is taken as a whole.
var derivedFrom = regexp.MustCompile(`^spec\.(nodeGroups\[\d+\]|controlPlane\.[A-Za-z]+)`)
