// Package random is the only source of chance: seeded, named streams, and the distributions of delays.
//
// A stream is derived from (seed, component, object), so that one more draw in one place shifts nothing elsewhere, and the arms of one seed see
// the same nodes, delays and arrivals: common random numbers, which make paired comparisons of arms sharp.
package random
