package kubelet

import "sync"

// crew counts goroutines, so that a component can end after the last of them.
type crew struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// start runs f in a goroutine, unless the crew was dismissed.
func (c *crew) start(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.wg.Go(f)
	}
	return !c.closed
}

// dismiss takes no further work and waits for what is going on.
func (c *crew) dismiss() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.wg.Wait()
}

// queue runs functions one after another, in the order in which they came. Its goroutine lives only while there is something to do, so that
// thousands of idle queues cost nothing.
type queue struct {
	crew *crew

	mu      sync.Mutex
	waiting []func()
	running bool
}

// push adds a function. It reports false, and drops the function, once the crew was dismissed.
func (q *queue) push(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.running {
		if !q.crew.start(q.drain) {
			return false
		}
		q.running = true
	}
	q.waiting = append(q.waiting, f)
	return true
}

func (q *queue) drain() {
	for f := q.next(); f != nil; f = q.next() {
		f()
	}
}

// next returns the function to run now, or nil when there is none, after which the goroutine must end.
func (q *queue) next() func() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running = false
		q.waiting = nil
		return nil
	}
	f := q.waiting[0]
	q.waiting = q.waiting[1:]
	return f
}
