package gate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/mirrorgap/mirrorgap/sim"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

func seconds(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }

// TestControllerRestarts: outages count from the start of the scale-up, each life is a new one, and the trace has them.
func TestControllerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, begin := time.Now(), make(chan struct{})
		var log []string
		note := func(what string) { log = append(log, fmt.Sprint(time.Since(start), " ", what)) }
		c := &Controller{
			restarts: []sim.Restart{{At: seconds(2), Down: seconds(3)}, {At: seconds(8), Down: seconds(1)}}, begin: begin,
			trace: trace.RecorderFunc(func(e trace.Event) { note(string(e.Kind)) }),
			run: func(ctx context.Context) error {
				note("lives")
				<-ctx.Done()
				note("ends")
				return nil
			},
		}
		time.AfterFunc(10*time.Second, func() { close(begin) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"0s lives", "12s ends", "12s ComponentStopped", "15s ComponentStarted", "15s lives", "18s ends", "18s ComponentStopped", "19s ComponentStarted",
			"19s lives", "1m0s ends",
		}
		if diff := cmp.Diff(want, log); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

// TestControllerFailsBeforeItsRestart: an error of the controller is the component's, whatever was planned.
func TestControllerFailsBeforeItsRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		c := &Controller{restarts: []sim.Restart{{At: seconds(2)}}, begin: make(chan struct{}), trace: trace.Discard, run: func(context.Context) error { return broken }}
		if err := c.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}
