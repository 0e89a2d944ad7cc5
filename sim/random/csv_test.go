package random

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestParseCSV(t *testing.T) {
	for _, c := range []struct {
		name, data, column, want string
	}{
		{"one column", "3\n1.5\n0\n", "", "[0s 1.5s 3s]"},
		{"one column with header, comment and blank line", "seconds\n# measured on Monday\n\n2\n 1\n", "", "[1s 2s]"},
		{"named column", "node,mirror\na,61.25\nb,60\n", "mirror", "[1m0s 1m1.25s]"},
		{"not measured everywhere", "node,ready,mirror\na,1,\nb,2,60\n", "mirror", "[1m0s]"},
		{"measured nowhere", "node,mirror\na,\n", "mirror", "line 1: the file has a header but no values"},
		{"rounds to the nanosecond", "0.1\n", "", "[100ms]"},
		{"empty", "", "", "line 1: the file is empty: put one delay in seconds on each line"},
		{"header only", "seconds\n", "", "line 1: the file has a header but no values"},
		{"several columns", "1,2\n", "", "line 1: 2 columns: name the one to use in the field column"},
		{"missing column", "a,b\n1,2\n", "c", `line 1: no column "c"; the header has a, b`},
		{"all bad values", "x\n1\nNaN\n-1\nInf\ny\n1e300\n", "",
			`line 3: "NaN": a delay must be from 0 to 31536000 seconds; line 4: "-1": a delay must be from 0 to 31536000 seconds; ` +
				`line 5: "Inf": a delay must be from 0 to 31536000 seconds; line 6: "y" is not a number of seconds; ` +
				`line 7: "1e300": a delay must be from 0 to 31536000 seconds`},
		{"ragged", "a,b\n1,2\n3\n", "b", "line 3: wrong number of fields"},
		{"stray quote", "1\n2\"\n", "", `line 2: bare " in non-quoted-field`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := describe(c.data, c.column); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// describe returns the values that ParseCSV found, or its errors.
func describe(data, column string) string {
	values, errs := ParseCSV([]byte(data), column)
	if len(errs) == 0 {
		var ds []time.Duration
		for _, v := range values {
			ds = append(ds, v.Duration)
		}
		return fmt.Sprint(ds)
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return strings.Join(texts, "; ")
}

func FuzzParseCSV(f *testing.F) {
	f.Add("a,b\n1,2\n", "b")
	f.Add("1\n\"2\n", "")
	f.Fuzz(func(t *testing.T, data, column string) {
		values, errs := ParseCSV([]byte(data), column)
		if len(errs) > 0 {
			return
		}
		if errs := (EmpiricalDelay{Values: values}).validate(nil); len(errs) > 0 {
			t.Fatal(errs)
		}
	})
}
