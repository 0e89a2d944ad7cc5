package verdict

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// checkJUnit writes the verdict and holds the file to it: well-formed, a case for each check, and the counts are those of the cases.
func checkJUnit(t *testing.T, v *Verdict, s *results.Summary) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := WriteJUnit(&out, v, s); err != nil {
		t.Fatal(err)
	}
	for decoder := xml.NewDecoder(bytes.NewReader(out.Bytes())); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not well-formed: %v\n%s", err, &out)
		}
	}
	var suites junitSuites
	if err := xml.Unmarshal(out.Bytes(), &suites); err != nil {
		t.Fatal(err)
	}
	suite := suites.Suites[0]
	cases := map[Outcome]int{}
	skipped := 0
	for _, c := range append(append([]Check(nil), v.Assumptions...), v.Thresholds...) {
		if c.Waived != "" {
			skipped++
			continue
		}
		cases[c.Outcome]++
	}
	want := junitCounts{len(v.Assumptions) + len(v.Thresholds), cases[Failed], cases[Inconclusive], skipped}
	if len(suite.Cases) != want.Tests || suite.junitCounts != want || suites.junitCounts != want {
		t.Errorf("%d cases, counts %+v and %+v, want %+v", len(suite.Cases), suite.junitCounts, suites.junitCounts, want)
	}
	return out.Bytes()
}

func TestJUnitGolden(t *testing.T) {
	s := race()
	set(s, gated, results.MetricHold, "", at(81.6, 79.25, 88.1)...)
	s.Arms[gated].Figure(results.MetricHold, "").Runs[2] = atLeast(30)
	missed := threshold("gated", results.MetricPodsCreated, Total, Less, 100)
	missed.Name, missed.Why = "few pods are created", "replacements cost the control plane"
	p := plan(noRejection(), missed, threshold("gated", results.MetricHold, Max, LessOrEqual, 90))
	p.Assumptions.RaceIn = &[]string{}
	golden(t, "junit.xml", checkJUnit(t, mustJudge(t, s, p), s))
}

// TestHostileTexts: whatever stands in files and traces, the XML stays well-formed and the table free of what a terminal would obey.
func TestHostileTexts(t *testing.T) {
	const hostile = "]]>&<\"'\x00\x1b[2J\u2028\ufffe\r\n<failure/>\xff--> é"
	s := race()
	s.Experiment = hostile
	r := &s.Arms[gated].Runs[0]
	r.Settled, r.End, r.EndMessage = false, hostile, hostile
	r.Died = []results.Death{{Component: hostile, Message: hostile}}
	r.Machine = trace.Machine{OS: hostile, CPUModel: hostile}
	r.Versions, r.Labels = map[string]string{hostile: hostile}, map[string]string{hostile: hostile}
	th := threshold("gated", results.MetricRejectedPodsByReason, Max, Greater, 0)
	th.Name, th.Why, th.Key = hostile, hostile, hostile
	v := mustJudge(t, s, plan(th))
	data := checkJUnit(t, v, s)
	if !utf8.Valid(data) || bytes.ContainsAny(data, "\x00\x1b") {
		t.Errorf("%q", data)
	}
	var table strings.Builder
	if err := v.Table(&table, 0); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(table.String(), "\x00\x1b\r") {
		t.Errorf("%q", table.String())
	}
}

// TestWriteErrors: a full disk is not overlooked.
func TestWriteErrors(t *testing.T) {
	v := mustJudge(t, race(), plan(noRejection()))
	if err := WriteJUnit(full{}, v, race()); !errors.Is(err, errFull) {
		t.Errorf("JUnit: got %v", err)
	}
	if err := v.Table(full{}, 80); !errors.Is(err, errFull) {
		t.Errorf("table: got %v", err)
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
