package kubelet

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/random"
)

// draws holds the random streams of one machine. They belong to the machine and not to its kubelet, so that a kubelet that starts again, or a
// machine that returns under the same name, draws new delays.
type draws struct {
	seed    random.Seed
	mu      sync.Mutex
	streams map[[2]string]*rand.Rand
}

func newDraws(seed random.Seed) *draws {
	return &draws{seed: seed, streams: map[[2]string]*rand.Rand{}}
}

// sample draws from the stream of an object.
func (d *draws) sample(delay *random.Delay, component, object string) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := [2]string{component, object}
	stream, ok := d.streams[key]
	if !ok {
		stream = d.seed.Stream(component, object)
		d.streams[key] = stream
	}
	return delay.Sample(stream)
}
