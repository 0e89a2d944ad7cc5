package results

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestWriteRun(t *testing.T) {
	for _, run := range []*Run{ungated(t).analyze("ungated"), gated(t).analyze("gated")} {
		dir := t.TempDir()
		if _, err := WriteRun(dir, run); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{NodesFile, PodsFile, SummaryFile} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, run.Header.Arm+"."+name, data)
		}
		noMoreFiles(t, dir, NodesFile, PodsFile, SummaryFile)
	}
}

func TestWriteSummary(t *testing.T) {
	dir := t.TempDir()
	if err := WriteSummary(dir, twoArms(t)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, SummaryFile))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "summary.json", data)
	var back struct{ Version string }
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	check(t, "version", back.Version, SummaryVersion)
}

func twoArms(t *testing.T) *Summary {
	t.Helper()
	return summarize(t, ungated(t).analyze("ungated"), gated(t).analyze("gated"))
}

func summarize(t *testing.T, runs ...*Run) *Summary {
	t.Helper()
	var digests []*Digest
	for _, run := range runs {
		digests = append(digests, run.Digest())
	}
	summary, err := Summarize(digests)
	if err != nil {
		t.Fatal(err)
	}
	return summary
}

// noMoreFiles fails if the folder has other files than these.
func noMoreFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	check(t, "files", strings.Join(got, " "), strings.Join(names, " "))
}

func TestReplaceFileThatFailsLeavesTheOldOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "summary.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := ReplaceFile(path, func(w io.Writer) error {
		if _, err := io.WriteString(w, strings.Repeat("half of the new one", 1000)); err != nil {
			return err
		}
		return syscall.EIO
	})
	if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names %s", err, path)
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != "old" {
		t.Errorf("file holds %q (%v), want the old one", data, err)
	}
	noMoreFiles(t, dir, "summary.json")
}

// TestDiskFull has the kernel refuse to let a file grow, which reaches the program as a write error, as ENOSPC does.
func TestDiskFull(t *testing.T) {
	run := ungated(t).analyze("ungated")
	dir := t.TempDir()
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	_, err := WriteRun(dir, run)
	if back := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); back != nil {
		t.Fatal(back)
	}
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), filepath.Join(dir, NodesFile)) {
		t.Errorf("got %v, want an error that names %s", err, NodesFile)
	}
	noMoreFiles(t, dir)
}

func TestWriteIntoAFolderThatIsNotThere(t *testing.T) {
	err := WriteSummary(filepath.Join(t.TempDir(), "gone"), twoArms(t))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want a folder that does not exist", err)
	}
}
