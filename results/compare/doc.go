// Package compare sets two results folders beside each other: two versions of Kubernetes, two gates, before and after a change. It also writes runs in
// the Go benchmark format, which benchstat reads.
package compare
