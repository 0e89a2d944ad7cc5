package experiments

import "github.com/mirrorgap/mirrorgap/sim"

// UseKubelets has every node of the experiment run a kubelet of that implementation, whatever the file says. Its error is a *BadInput: not every experiment
// can be run with real kubelets.
func (e *Experiment) UseKubelets(implementation sim.Implementation) error {
	e.Spec.Kubelet.Implementation = implementation
	for i := range e.Spec.NodeGroups {
		e.Spec.NodeGroups[i].Kubelet.Implementation = implementation
	}
	var problems []Problem
	for _, err := range e.validate() {
		problems = append(problems, Problem{Field: err.Field, Message: err.ErrorBody()})
	}
	if len(problems) > 0 {
		return &BadInput{Problems: problems}
	}
	return nil
}
