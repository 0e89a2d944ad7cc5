package verdict

import "fmt"

// Outcome is how a check, or a whole verdict, came out.
type Outcome int

const (
	// Inconclusive: it cannot be said. The zero value, so that whatever was not judged has not passed.
	Inconclusive Outcome = iota
	// Passed: the threshold is met, or the assumption holds.
	Passed
	// Failed: the threshold is not met. Assumptions do not fail: one that does not hold is Inconclusive.
	Failed
)

var outcomes = map[Outcome]string{Inconclusive: "inconclusive", Passed: "passed", Failed: "failed"}

// String is the outcome in lower case.
func (o Outcome) String() string {
	if text, ok := outcomes[o]; ok {
		return text
	}
	return fmt.Sprintf("Outcome(%d)", int(o))
}

// MarshalText implements encoding.TextMarshaler.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It fails on anything but what String returns.
func (o *Outcome) UnmarshalText(text []byte) error {
	for outcome, name := range outcomes {
		if name == string(text) {
			*o = outcome
			return nil
		}
	}
	return fmt.Errorf("%q is not an outcome: it is passed, failed or inconclusive", text)
}
