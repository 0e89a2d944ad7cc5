package experiments

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// BadInput is everything that is wrong with what a user gave. Commands exit with code 2 for it.
type BadInput struct {
	// Problems are in the order of the file that was loaded, followed by those of the files that it names.
	Problems []Problem
}

// Error lists all problems, one a line.
func (e *BadInput) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Problem is one thing that is wrong.
type Problem struct {
	// File is the experiment file as the user named it, or a file that it names. Empty when the problem is in no file.
	File string
	// Line counts from 1; 0 when the problem is about the whole file.
	Line int
	// Field is the path of the field in the experiment, with what was in other files in its place. Empty when the problem is about no field.
	Field string
	// Message says what is wrong and what to do.
	Message string
}

// String is file:line: field: message, without the parts that are empty.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
		if p.Line > 0 {
			fmt.Fprintf(&b, "%d:", p.Line)
		}
		b.WriteString(" ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// badInput sorts the problems of a file and the files that it names, and makes an error of them.
func badInput(file string, problems []Problem) *BadInput {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		if a.File != b.File && (a.File == file || b.File == file) {
			if a.File == file {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return &BadInput{slices.Compact(problems)}
}
