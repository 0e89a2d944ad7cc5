package agreement

import (
	_ "embed" // the report
	"encoding/json"
	"fmt"
	"strings"
)

// Page is where the embedded report can be read, with what it leaves out.
const Page = "https://github.com/mirrorgap/mirrorgap/blob/main/docs/model-agreement.md"

//go:embed committed/agreement.json
var committed []byte

// Committed is the report that this version of mirrorgap comes with: how far its model agreed with the real kubelet when it was last measured. It is
// JSONFile of mirrorgap validate-model, as it was written.
func Committed() (*Report, error) {
	r := &Report{}
	if err := json.Unmarshal(committed, r); err != nil {
		return nil, fmt.Errorf("read the embedded agreement report: %w", err)
	}
	return r, nil
}

// Brief says in a few sentences how the report came out, and by what figures.
func (r *Report) Brief() []string {
	all := []string{
		r.Sentence(),
		fmt.Sprintf("Measured on %s, on %s, with Kubernetes %s: %s.", r.Start.Format("2 January 2006"), r.Machine, r.Versions["kubernetes"], r.Command),
		fmt.Sprintf("Admission (%s): %s.", word(outcomeOf(r.Admission)), r.Admission.Summary()),
	}
	if r.Timing == nil {
		return all
	}
	for _, doubt := range r.Timing.Doubts {
		all = append(all, "Timing: "+doubt+".")
	}
	for i := range r.Timing.Delays {
		d := &r.Timing.Delays[i]
		all = append(all, fmt.Sprintf("%s (%s): median %s, real %s; Kolmogorov–Smirnov distance %s, by chance up to %s; n = %s, %s.", sentenceCase(d.Label()),
			word(d.Outcome), d.Model.Middle(), d.Real.Middle(), share(d.Distance.Value), share(d.Distance.Critical), d.Model.Size(), d.Real.Size()))
	}
	s := &r.Timing.Storm
	modelled, ofReal := s.Rates()
	return append(all, fmt.Sprintf("Replacement storm (%s): %s rejections per node, real %s; model/real %s, n = %d runs.",
		word(s.Outcome), modelled, ofReal, s.RatioText(), s.Ratio.N))
}

// sentenceCase begins with a capital letter.
func sentenceCase(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
