package random

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// Seed is the root of all streams of a run.
type Seed uint64

// Stream returns the stream of one object of one component. The same arguments always give the same sequence; different ones give sequences
// that are independent for all practical purposes (SHA-256 keys a ChaCha8 generator). A stream is not safe for concurrent use.
func (s Seed) Stream(component, object string) *rand.Rand {
	h := sha256.New()
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], uint64(s))
	h.Write(seed[:])
	fmt.Fprintf(h, "%d:%s%d:%s", len(component), component, len(object), object)
	return rand.New(rand.NewChaCha8([32]byte(h.Sum(nil))))
}
