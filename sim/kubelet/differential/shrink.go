package differential

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Shrink simplifies a sequence as long as it still disagrees, which disagrees tells: it leaves out one part after another, as often as that succeeds.
// It asks at most limit times; what it returns disagreed when it was asked, or is the sequence itself.
func Shrink(s *Sequence, limit int, disagrees func(*Sequence) bool) *Sequence {
	smallest := s
	for shrunk := true; shrunk; {
		shrunk = false
		for i := 0; ; {
			candidates := simpler(smallest)
			if i >= len(candidates) {
				break
			}
			if limit == 0 {
				return smallest
			}
			limit--
			if disagrees(candidates[i]) {
				smallest, shrunk = candidates[i], true // what comes next has moved to i
			} else {
				i++
			}
		}
	}
	return smallest
}

// simpler are the sequences with one part less, the largest parts first.
func simpler(s *Sequence) []*Sequence {
	var all []*Sequence
	try := func(change func(*Sequence)) {
		c := s.clone()
		change(c)
		if !c.leftToChance() {
			all = append(all, c)
		}
	}
	half := len(s.Steps) / 2
	if half > 0 {
		try(func(c *Sequence) { c.Steps = c.Steps[:half] })
		try(func(c *Sequence) { c.Steps = c.Steps[half:] })
	}
	for i := range s.Steps {
		try(func(c *Sequence) { c.Steps = slices.Delete(c.Steps, i, i+1) })
		for j := range s.Steps[i].Create {
			if len(s.Steps[i].Create) > 1 {
				try(func(c *Sequence) { c.Steps[i].Create = slices.Delete(c.Steps[i].Create, j, j+1) })
			}
		}
	}
	for i := range s.Early {
		try(func(c *Sequence) { c.Early = slices.Delete(c.Early, i, i+1) })
	}
	for i := range s.Static {
		try(func(c *Sequence) { c.Static = slices.Delete(c.Static, i, i+1) })
	}
	for i, p := range s.all() {
		for _, change := range p.parts() {
			try(func(c *Sequence) { change(c.all()[i]) })
		}
	}
	if s.Node.Taints != nil {
		try(func(c *Sequence) { c.Node.Taints = nil })
	}
	if s.Node.Labels != nil {
		try(func(c *Sequence) { c.Node.Labels = nil })
	}
	if s.Node.Allocatable != nil {
		try(func(c *Sequence) { c.Node.Allocatable = nil })
	}
	return all
}

// parts are what can be left out of a pod.
func (p *Pod) parts() []func(*Pod) {
	var all []func(*Pod)
	part := func(is bool, without func(*Pod)) {
		if is {
			all = append(all, without)
		}
	}
	for i := range p.Init {
		part(true, func(p *Pod) { p.Init = slices.Delete(p.Init, i, i+1) })
	}
	part(len(p.Containers) > 1, func(p *Pod) { p.Containers = p.Containers[:1] })
	part(p.Requests != nil, func(p *Pod) { p.Requests = nil })
	part(p.Overhead, func(p *Pod) { p.Overhead = false })
	part(p.Critical, func(p *Pod) { p.Critical = false })
	part(p.NodeSelector != nil, func(p *Pod) { p.NodeSelector = nil })
	part(p.Tolerates, func(p *Pod) { p.Tolerates = false })
	main := p.Containers[0]
	part(main.HostPort > 0, func(p *Pod) { p.Containers[0].HostPort = 0 })
	part(main.Limited, func(p *Pod) { p.Containers[0].Limited = false })
	for _, resource := range []corev1.ResourceName{
		unknownResource, knownResource, corev1.ResourceEphemeralStorage, corev1.ResourceMemory, corev1.ResourceCPU,
	} {
		if _, ok := main.Requests[resource]; ok {
			part(true, func(p *Pod) { delete(p.Containers[0].Requests, resource) })
		}
	}
	return all
}

func (s *Sequence) clone() *Sequence {
	data, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("a sequence is plain data: %v", err))
	}
	c := new(Sequence)
	if err := json.Unmarshal(data, c); err != nil {
		panic(fmt.Sprintf("a sequence reads what it wrote: %v", err))
	}
	return c
}

// Write writes a sequence to <name>.json in a folder, for ReadAll.
func (s *Sequence) Write(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write sequence %s: %w", s.Name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, s.Name+".json"), append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write sequence %s: %w", s.Name, err)
	}
	return nil
}

// ReadAll reads the sequences in a folder, in the order of their file names. An unreadable one is an error that names its file.
func ReadAll(dir string) ([]*Sequence, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("look for sequences in %s: %w", dir, err)
	}
	var all []*Sequence
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read sequence: %w", err)
		}
		s := new(Sequence)
		if err := json.Unmarshal(data, s); err != nil {
			return nil, fmt.Errorf("%s: read sequence: %w", path, err)
		}
		all = append(all, s)
	}
	return all, nil
}
