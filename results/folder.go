package results

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mirrorgap/mirrorgap/sim/trace"
)

// TraceFile is the name of a run's trace.
const TraceFile = "trace.jsonl"

// InputError is what is wrong with a file or folder that a user gave. Commands exit with code 2 for it.
type InputError struct{ Err error }

// Error implements error.
func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *InputError) Unwrap() error { return e.Err }

func badInput(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// Folder is a results folder: the traces of an experiment's runs.
type Folder struct {
	// Path is the folder.
	Path string
	// Traces are the paths of the traces in the order in which their runs began.
	Traces []string
}

// tracePatterns are where traces are in a results folder: of one run, of runs by arm, and by arm and seed.
var tracePatterns = []string{TraceFile, "*/" + TraceFile, "*/*/" + TraceFile}

// OpenFolder finds the traces of a results folder, or of the trace file that path names. The error is an *InputError when there is none, or one that
// is not a trace of this schema, or when they are not runs of one experiment.
func OpenFolder(path string) (*Folder, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, badInput("open results: %w", err)
	}
	paths := []string{path}
	f := &Folder{Path: filepath.Dir(path)}
	if info.IsDir() {
		f.Path = path
		if paths, err = findTraces(path); err != nil {
			return nil, err
		}
	}
	if err := f.arrange(paths); err != nil {
		return nil, err
	}
	return f, nil
}

func findTraces(dir string) ([]string, error) {
	var paths []string
	for _, pattern := range tracePatterns {
		found, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, badInput("open results folder %s: %w", dir, err)
		}
		for _, name := range found {
			paths = append(paths, filepath.Join(dir, filepath.FromSlash(name)))
		}
	}
	if len(paths) == 0 {
		return nil, badInput("%s is not a results folder: it has no %s, nor <arm>/seed-<n>/%s", dir, TraceFile, TraceFile)
	}
	return paths, nil
}

// arrange brings traces in the order in which their runs began, and checks that they belong together.
func (f *Folder) arrange(paths []string) error {
	starts := map[string]time.Time{}
	var experiment, from string
	var problems []error
	for _, path := range paths {
		header, err := readHeader(path)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if from == "" {
			experiment, from = header.Experiment, path
		}
		if header.Experiment != experiment {
			problems = append(problems, fmt.Errorf("%s is of experiment %q, and %s of %q: a results folder holds one experiment",
				path, header.Experiment, from, experiment))
		}
		starts[path] = header.Start
	}
	if len(problems) > 0 {
		return &InputError{errors.Join(problems...)}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(starts[a].Compare(starts[b]), cmp.Compare(a, b)) })
	f.Traces = paths
	return nil
}

func readHeader(path string) (trace.Header, error) {
	var header trace.Header
	err := withTrace(path, func(r *trace.Reader) error {
		header = r.Header()
		return nil
	})
	return header, err
}

func withTrace(path string, use func(*trace.Reader) error) error {
	file, err := os.Open(path)
	if err != nil {
		return badInput("read trace: %w", err)
	}
	defer func() { _ = file.Close() }()
	reader, err := trace.NewReader(path, file)
	if err != nil {
		return &InputError{err}
	}
	return use(reader)
}

// ReadTrace analyzes the trace at path. The error is an *InputError that names the file, and the line if one is wrong.
func ReadTrace(path string) (*Run, error) {
	var run *Run
	err := withTrace(path, func(r *trace.Reader) (err error) {
		if run, err = Analyze(r); err != nil {
			return &InputError{err}
		}
		return nil
	})
	return run, err
}

// Runs reads the runs one after another, and stops at the first error. Only one run is in memory at a time unless the caller keeps it.
func (f *Folder) Runs() iter.Seq2[*Run, error] {
	return func(yield func(*Run, error) bool) {
		for _, path := range f.Traces {
			run, err := ReadTrace(path)
			if !yield(run, err) || err != nil {
				return
			}
		}
	}
}

// Summary reads all runs and puts them together. The error is as ReadTrace's, or tells why the runs do not belong together.
func (f *Folder) Summary() (*Summary, error) {
	var digests []*Digest
	for run, err := range f.Runs() {
		if err != nil {
			return nil, err
		}
		digests = append(digests, run.Digest())
	}
	summary, err := Summarize(digests)
	if err != nil {
		return nil, &InputError{err}
	}
	return summary, nil
}
