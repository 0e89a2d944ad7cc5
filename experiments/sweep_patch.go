package experiments

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// patcher makes the tree of an experiment from those of its base and of a sweep. The decoder knows afterwards which of the two files each node is of.
type patcher struct {
	*decoder
	sweep string // the sweep file
}

// experiment makes the tree of a case without its values; spec is that of the sweep's file.
func (p *patcher) experiment(base, spec *yaml.Node, s *Sweep, c *Case) *yaml.Node {
	labels := &yaml.Node{Kind: yaml.MappingNode, Line: spec.Line}
	for i := range s.Spec.Parameters {
		set(labels, s.Spec.Parameters[i].Name, c.Labels[i], spec.Line)
	}
	metadata := &yaml.Node{Kind: yaml.MappingNode, Line: spec.Line}
	set(metadata, "name", s.Metadata.Name, spec.Line)
	p.put(metadata, "labels", labels)

	own := &yaml.Node{Kind: yaml.MappingNode, Line: base.Line}
	if given := get(base, "spec"); given != nil {
		own = without(deepCopy(given), "description")
	}
	for _, name := range judging {
		remove(own, name)
	}
	set(own, "description", strings.TrimSpace(fmt.Sprintf("Case %s of the sweep %s.\n%s", c.Name, s.Metadata.Name, s.Spec.Description)), spec.Line)
	if seeds := get(spec, "seeds"); seeds != nil {
		p.put(own, "seeds", seeds)
	}

	root := &yaml.Node{Kind: yaml.MappingNode, Line: base.Line}
	set(root, "apiVersion", APIVersion, base.Line)
	set(root, "kind", Kind, base.Line)
	p.put(root, "metadata", metadata)
	put(root, "spec", own, base.Line)
	return root
}

// put sets a field to a copy of a node of the sweep.
func (p *patcher) put(n *yaml.Node, key string, value *yaml.Node) {
	value = deepCopy(value)
	p.origins[value] = p.sweep
	p.origins[put(n, key, value, value.Line)] = p.sweep
}

// set sets the field that the node at names to a copy of a value of the sweep. What is wrong with the field is reported; path is where the node is.
func (p *patcher) set(root, at, value *yaml.Node, path *field.Path) {
	refuse := func(format string, args ...any) { p.report(p.sweep, at, path, format, args...) }
	steps, err := stepsOf(at.Value)
	if err != nil {
		refuse("%v", err)
		return
	}
	n, last := root, len(steps)-1
	for i, step := range steps {
		if isNull(n) {
			*n = yaml.Node{Kind: yaml.MappingNode, Line: at.Line}
			p.origins[n] = p.sweep
		}
		switch n.Kind {
		case yaml.MappingNode:
			if i == last {
				p.put(n, step, value)
				return
			}
			if get(n, step) == nil {
				p.put(n, step, &yaml.Node{Kind: yaml.MappingNode, Line: at.Line})
			}
			n = get(n, step)
		case yaml.SequenceNode:
			index, err := indexIn(n, step)
			if err != nil {
				refuse("the experiment's %s %v", steps[i-1], err)
				return
			}
			if i == last {
				n.Content[index] = deepCopy(value)
				p.origins[n.Content[index]] = p.sweep
				return
			}
			n = n.Content[index]
		default:
			refuse("the experiment's %s is %s, which has no %s", steps[i-1], kindName(n), step)
			return
		}
	}
}

// indexIn is the index into a list that a step of a path stands for.
func indexIn(n *yaml.Node, step string) (int, error) {
	index, err := strconv.Atoi(step)
	if err != nil || index < 0 || index >= len(n.Content) {
		return 0, fmt.Errorf("is a list of %d, which has no entry [%s]: they count from 0", len(n.Content), step)
	}
	if slices.ContainsFunc(n.Content[:index+1], func(item *yaml.Node) bool { return get(item, "folder") != nil }) {
		return 0, errors.New("has an entry that names a folder, of which each file becomes an entry: name the files instead")
	}
	return index, nil
}

// lookup is the node of a field that is there.
func lookup(root *yaml.Node, path string) *yaml.Node {
	steps, err := stepsOf(path)
	if err != nil {
		return nil
	}
	n := root
	for _, step := range steps {
		if n.Kind == yaml.SequenceNode {
			index, err := indexIn(n, step)
			if err != nil {
				return nil
			}
			n = n.Content[index]
		} else {
			n = get(n, step)
		}
	}
	return n
}

// fieldPath is a path as errors write it: names with dots between, and indices or keys of maps in brackets.
var fieldPath = regexp.MustCompile(`^spec((\.[A-Za-z][A-Za-z0-9]*)|(\[[^\[\]]+\]))+$`)

// stepsOf takes a path apart: the names, indices and keys that lead to a field.
func stepsOf(path string) ([]string, error) {
	if !fieldPath.MatchString(path) {
		return nil, errors.New("must be the path of a field of the experiment, such as spec.kubelet.mirrorDelay or spec.nodeGroups[0].scaleUp.to")
	}
	var steps []string
	for path != "" {
		var step string
		if strings.HasPrefix(path, "[") {
			step, path, _ = strings.Cut(path[1:], "]")
		} else {
			path = strings.TrimPrefix(path, ".")
			end := strings.IndexAny(path+".", ".[")
			step, path = path[:end], path[end:]
		}
		steps = append(steps, step)
	}
	return steps, nil
}

// put sets a field, and returns the node of its key.
func put(n *yaml.Node, key string, value *yaml.Node, line int) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return n.Content[i]
		}
	}
	name := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key, Line: line}
	n.Content = append(n.Content, name, value)
	return name
}

// deepCopy copies a tree, with what aliases stand for in their place.
func deepCopy(n *yaml.Node) *yaml.Node {
	c := *resolve(n)
	c.Anchor = ""
	c.Content = make([]*yaml.Node, len(c.Content))
	for i, child := range resolve(n).Content {
		c.Content[i] = deepCopy(child)
	}
	return &c
}
