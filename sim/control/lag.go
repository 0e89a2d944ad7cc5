package control

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// lagPodWatches has every watch of pods that a client with cfg opens arrive late by lag; 0 changes nothing. All else, lists of pods too, is as fast as ever.
func lagPodWatches(cfg *rest.Config, lag time.Duration) {
	if lag > 0 {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lateWatches{next: next, lag: lag} })
	}
}

// lateWatches delays what the API server sends in answer to a watch of pods.
type lateWatches struct {
	next http.RoundTripper
	lag  time.Duration
}

// RoundTrip implements http.RoundTripper. Only the body is late: that the watch stands is known at once.
func (l *lateWatches) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err == nil && watchesPods(request) && response.StatusCode == http.StatusOK {
		response.Body = delayed(request.Context(), response.Body, l.lag)
	}
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below, to close its idle connections.
func (l *lateWatches) WrappedRoundTripper() http.RoundTripper { return l.next }

// watchesPods tells a watch of pods, in all namespaces or in one, from other requests.
func watchesPods(request *http.Request) bool {
	path, watch := request.URL.Path, request.URL.Query().Get("watch")
	return request.Method == http.MethodGet && strings.HasPrefix(path, "/api/v1/") && strings.HasSuffix(path, "/pods") && (watch == "true" || watch == "1")
}

// delayLine is a body that is read as soon as it arrives, and delivered, byte for byte and in order, a constant time later: the events of a burst come as
// close together as they were sent. It keeps what arrives within that time in memory, so that the sender is never slowed down.
type delayLine struct {
	ctx  context.Context //nolint:containedctx // the request's: a body ends with it
	body io.ReadCloser
	lag  time.Duration

	closed  chan struct{}
	close   func() error
	pumping sync.WaitGroup

	mu      sync.Mutex
	parts   []part
	arrived chan struct{} // has an element when parts may have changed
}

// part is what one read of the body gave, and when it is to be delivered.
type part struct {
	due  time.Time
	data []byte
	err  error
}

func delayed(ctx context.Context, body io.ReadCloser, lag time.Duration) *delayLine {
	d := &delayLine{ctx: ctx, body: body, lag: lag, closed: make(chan struct{}), arrived: make(chan struct{}, 1)}
	d.close = sync.OnceValue(func() error {
		close(d.closed)
		err := d.body.Close() // ends the pump's read
		d.pumping.Wait()
		return err
	})
	d.pumping.Go(d.pump)
	return d
}

// Close implements io.Closer. Nothing is read any more when it returns; a Read that waits returns at once.
func (d *delayLine) Close() error { return d.close() }

// pump reads the body until its end.
func (d *delayLine) pump() {
	buffer := make([]byte, 32<<10)
	for {
		n, err := d.body.Read(buffer)
		d.put(part{due: time.Now().Add(d.lag), data: append([]byte(nil), buffer[:n]...), err: err})
		if err != nil {
			return
		}
	}
}

func (d *delayLine) put(p part) {
	d.mu.Lock()
	d.parts = append(d.parts, p)
	d.mu.Unlock()
	select {
	case d.arrived <- struct{}{}:
	default:
	}
}

// Read implements io.Reader. It ends with the request's context and with Close, whatever is still on its way.
func (d *delayLine) Read(p []byte) (int, error) {
	for {
		if err := d.ended(); err != nil {
			return 0, err
		}
		wait, due := d.due()
		if due {
			return d.take(p)
		}
		d.sleep(wait)
	}
}

// ended is why nothing more is delivered; nil while something may be.
func (d *delayLine) ended() error {
	select {
	case <-d.closed:
		return http.ErrBodyReadAfterClose
	case <-d.ctx.Done():
		return d.ctx.Err()
	default:
		return nil
	}
}

// due tells whether there is something to deliver; if not, how long it is until then, or 0 if that is not known yet.
func (d *delayLine) due() (wait time.Duration, due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.parts) == 0 {
		return 0, false
	}
	wait = max(time.Until(d.parts[0].due), 0)
	return wait, wait == 0
}

// take delivers of the first part what fits into p.
func (d *delayLine) take(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first := &d.parts[0]
	n := copy(p, first.data)
	first.data = first.data[n:]
	if len(first.data) > 0 || first.err != nil && n > 0 {
		return n, nil
	}
	if first.err != nil { // the end is delivered to every later Read, too
		return n, first.err
	}
	d.parts = d.parts[1:]
	return n, nil
}

// sleep waits for the time to pass, or, without one, for something to arrive; and no longer than something may be delivered.
func (d *delayLine) sleep(wait time.Duration) {
	var timer <-chan time.Time
	arrived := d.arrived
	if wait > 0 {
		timer, arrived = time.After(wait), nil
	}
	select {
	case <-timer:
	case <-arrived:
	case <-d.closed:
	case <-d.ctx.Done():
	}
}
