package control

import (
	"context"

	"k8s.io/client-go/rest"

	"github.com/mirrorgap/mirrorgap/sim"
)

// throttle sets what spec sets and leaves the rest.
func throttle(cfg *rest.Config, spec sim.Client) {
	if spec.QPS != 0 {
		cfg.QPS = spec.QPS
	}
	if spec.Burst != 0 {
		cfg.Burst = spec.Burst
	}
}

// onlyUnlessDone drops an error that is merely the consequence of ctx having ended.
func onlyUnlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // see above
	}
	return err
}
