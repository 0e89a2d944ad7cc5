package sweeper

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/results"
)

// SweepFile is the name of the resolved sweep in its results folder.
const SweepFile = "sweep.yaml"

// caseFolder is where a case is in the results folder of its sweep.
func caseFolder(c *experiments.Case) string { return filepath.Join("cases", c.Name) }

// folder is the results folder of a sweep, which no other process uses.
type folder struct {
	path string
	lock *os.File
}

// open makes the results folder of a sweep, or takes one that an earlier attempt of the same sweep has left. It is bad input if the folder is of
// something else, or if another process makes runs in it.
func open(path string, s *experiments.Sweep) (*folder, error) {
	resolved, err := s.YAML()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, badInput("make results folder: %v", err)
	}
	f := &folder{path: path}
	if f.lock, err = lock(path); err != nil {
		return nil, err
	}
	if err := f.claim(resolved); err != nil {
		return nil, errors.Join(err, f.close())
	}
	for i := range s.Cases {
		if err := f.prepare(&s.Cases[i]); err != nil {
			return nil, errors.Join(err, f.close())
		}
	}
	return f, nil
}

// lock keeps other processes out of a folder for as long as the file that it returns is open, or the process lives.
func lock(path string) (*os.File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, badInput("open results folder: %v", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close() // nothing was written
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, badInput("results folder %s is in use by another mirrorgap sweep", path)
		}
		return nil, fmt.Errorf("lock results folder %s: %w", path, err)
	}
	return file, nil
}

func (f *folder) close() error { return f.lock.Close() }

// claim makes the folder that of the sweep. One that is another sweep's, or anything else, is refused.
func (f *folder) claim(resolved []byte) error {
	path := filepath.Join(f.path, SweepFile)
	text, err := os.ReadFile(path)
	if err == nil {
		if difference := experiments.Difference(path, text, resolved); difference != "" {
			return badInput("%s: results folder %s is of another sweep, or of another state of it: name another with --out", difference, f.path)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return badInput("read sweep: %v", err)
	}
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return badInput("results folder: %v", err)
	}
	if len(entries) > 0 {
		return badInput("results folder %s is in use: name another with --out, or remove it", f.path)
	}
	return write(path, resolved)
}

// prepare makes the results folder of a case.
func (f *folder) prepare(c *experiments.Case) error {
	dir := filepath.Join(f.path, caseFolder(c))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make results folder of a case: %w", err)
	}
	resolved, err := c.Experiment.YAML()
	if err != nil {
		return err
	}
	return write(filepath.Join(dir, experiments.ResolvedFile), resolved)
}

func write(path string, data []byte) error {
	return results.ReplaceFile(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// runFolder is where a run is in a results folder.
func runFolder(path string, run experiments.SweepRun) string {
	return filepath.Join(path, caseFolder(run.Case), run.Folder())
}

// finished reads a run; nil if it is not finished.
func finished(path string, run experiments.SweepRun) *results.Run {
	dir := runFolder(path, run)
	if _, err := os.Stat(filepath.Join(dir, results.SummaryFile)); err != nil { // it is written last
		return nil
	}
	read, err := results.ReadTrace(filepath.Join(dir, results.TraceFile))
	if err != nil || !read.Conclusive() {
		return nil
	}
	h := read.Header
	if h.Experiment != run.Case.Experiment.Metadata.Name || !maps.Equal(h.Labels, run.Case.Experiment.Metadata.Labels) ||
		h.Arm != run.Arm.Name || h.Seed != run.Seed {
		return nil
	}
	return read
}

// Finished tells of each run of a sweep, in the order of its Runs, how long it took by its trace, and whether it is finished in the results folder at
// path, which need not exist.
func Finished(path string, s *experiments.Sweep) (took []time.Duration, done []bool) {
	runs := s.Runs()
	took, done = make([]time.Duration, len(runs)), make([]bool, len(runs))
	for i, run := range runs {
		if read := finished(path, run); read != nil {
			took[i], done[i] = read.Wall, true
		}
	}
	return took, done
}

func badInput(format string, args ...any) error {
	return &experiments.BadInput{Problems: []experiments.Problem{{Message: fmt.Sprintf(format, args...)}}}
}
