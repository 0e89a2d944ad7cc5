package random

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LineError is what is wrong with one line of a CSV file.
type LineError struct {
	// Line counts from 1.
	Line int
	// Err says what is wrong, without the line.
	Err error
}

// Error implements error.
func (e LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e LineError) Unwrap() error { return e.Err }

// ParseCSV reads measured delays, in seconds, and returns them in ascending order. With a column name the file's first row is a header that has
// it; without, the file has a single column, whose first row may be a header (anything that is not a number). Lines that begin with # are
// skipped, and so are empty cells of a named column: what was not measured. Everything that is wrong is reported; values are returned only when nothing is.
func ParseCSV(data []byte, column string) ([]metav1.Duration, []LineError) {
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment = '#'
	r.TrimLeadingSpace = true

	first, err := r.Read()
	if errors.Is(err, io.EOF) {
		return nil, []LineError{{1, errors.New("the file is empty: put one delay in seconds on each line")}}
	}
	if err != nil {
		return nil, []LineError{lineError(err)}
	}
	index, header, err := findColumn(first, column)
	if err != nil {
		line, _ := r.FieldPos(0)
		return nil, []LineError{{line, err}}
	}

	var values []metav1.Duration
	var errs []LineError
	row := first
	if header {
		row, err = r.Read()
	}
	for ; !errors.Is(err, io.EOF); row, err = r.Read() {
		if err != nil {
			errs = append(errs, lineError(err))
			continue
		}
		if column != "" && row[index] == "" {
			continue
		}
		value, err := parseSeconds(row[index])
		if err != nil {
			line, _ := r.FieldPos(index)
			errs = append(errs, LineError{line, err})
		}
		values = append(values, value)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	if len(values) == 0 {
		return nil, []LineError{{1, errors.New("the file has a header but no values")}}
	}
	slices.SortFunc(values, func(a, b metav1.Duration) int { return cmp.Compare(a.Duration, b.Duration) })
	return values, nil
}

// findColumn returns the index of the wanted column, and whether the first row is a header.
func findColumn(first []string, column string) (index int, header bool, err error) {
	if column != "" {
		if index = slices.Index(first, column); index < 0 {
			return 0, false, fmt.Errorf("no column %q; the header has %s", column, strings.Join(first, ", "))
		}
		return index, true, nil
	}
	if len(first) != 1 {
		return 0, false, fmt.Errorf("%d columns: name the one to use in the field column", len(first))
	}
	_, err = strconv.ParseFloat(first[0], 64)
	return 0, err != nil, nil
}

// parseSeconds parses a number of seconds from 0 to Longest.
func parseSeconds(s string) (metav1.Duration, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil {
		return metav1.Duration{}, fmt.Errorf("%q is not a number of seconds", s)
	}
	if !(x >= 0 && x <= Longest.Seconds()) {
		return metav1.Duration{}, fmt.Errorf("%q: a delay must be from 0 to %.0f seconds", s, Longest.Seconds())
	}
	return metav1.Duration{Duration: time.Duration(math.Round(x * float64(time.Second)))}, nil
}

// lineError takes the line out of an error of package csv.
func lineError(err error) LineError {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return LineError{parse.Line, parse.Err}
	}
	return LineError{1, err}
}
