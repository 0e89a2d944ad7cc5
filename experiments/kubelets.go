package experiments

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/mirrorgap/mirrorgap/sim"
)

// UseKubelets has every node of the experiment run a kubelet of that implementation, whatever the file says. Its error is a *BadInput: not every experiment
// can be run with real kubelets.
func (e *Experiment) UseKubelets(implementation sim.Implementation) error {
	use(&e.Spec.Cluster, implementation)
	errs := e.validate()
	for i := range e.Spec.Arms {
		if arm := &e.Spec.Arms[i]; arm.cluster != nil {
			use(arm.cluster, implementation)
			errs = append(errs, arm.cluster.Validate(field.NewPath("spec"))...)
			if _, err := arm.resolveSet(); err != nil {
				return &BadInput{[]Problem{{Message: err.Error()}}}
			}
		}
	}
	var problems []Problem
	for _, err := range errs {
		problems = append(problems, Problem{Field: err.Field, Message: err.ErrorBody()})
	}
	if len(problems) > 0 {
		return &BadInput{Problems: problems}
	}
	return nil
}

func use(c *sim.Cluster, implementation sim.Implementation) {
	c.Kubelet.Implementation = implementation
	for i := range c.NodeGroups {
		c.NodeGroups[i].Kubelet.Implementation = implementation
	}
}
