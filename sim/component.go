package sim

import (
	"context"

	"k8s.io/client-go/rest"
)

// Component takes part in a simulated cluster: the scheduler, a controller, KWOK, the fleet, the recorder, …
// It gets its client configuration, its part of the specification and its random streams when it is made, uses the standard time package for
// all waiting, and nothing global.
type Component interface {
	// Name is how traces, logs and errors call it, in the words of Kubernetes where there is one ("kube-scheduler").
	Name() string
	// Run does the component's work until ctx ends, and then returns nil after everything it started has stopped. It returns early only with the
	// error that keeps it from going on; that ends the run.
	Run(ctx context.Context) error
}

// Access hands out client configurations, one identity each. Engines implement it.
type Access interface {
	// ConfigFor returns a configuration for a user of that name and those groups, with client-side throttling off (QPS -1).
	// Every call returns a copy that the caller may change.
	ConfigFor(user string, groups ...string) (*rest.Config, error)
}

// Masters is the group that may do everything; components that RBAC is not the subject of belong to it.
const Masters = "system:masters"
