package sweeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mirrorgap/mirrorgap/experiments"
)

const (
	// childLog, in the folder of a run, takes what its process writes. Its last tailBytes go into the error of a run that failed.
	childLog  = "logs/mirrorgap.log"
	tailBytes = 2000
	// stopTimeout is how long a process that was told to stop may take; then it is killed. Its own servers have 30 s each.
	stopTimeout = 2 * time.Minute
)

// makeRun makes a run in a process of its own, after removing what is left of an earlier attempt.
func makeRun(ctx context.Context, path string, run experiments.SweepRun, child []string) error {
	dir := runFolder(path, run)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove what is left of an earlier attempt: %w", err)
	}
	log := filepath.Join(dir, childLog)
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		return fmt.Errorf("make the run's folder: %w", err)
	}
	out, err := os.Create(log)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	arguments := slices.Concat(child[1:], []string{filepath.Join(path, caseFolder(run.Case)), run.Arm.Name, strconv.FormatUint(run.Seed, 10)})
	cmd := exec.CommandContext(ctx, child[0], arguments...) //nolint:gosec // it is the program itself
	cmd.Stdout, cmd.Stderr = out, out
	// The end of its standard input tells the process to stop. That comes also if this process is killed.
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return errors.Join(fmt.Errorf("make a pipe: %w", err), out.Close())
	}
	cmd.Cancel, cmd.WaitDelay = stdin.Close, stopTimeout
	err = errors.Join(cmd.Run(), out.Close())
	switch {
	case finished(path, run) != nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		err = errors.New("its process ended without an error, but left no whole trace")
	}
	return fmt.Errorf("%w%s", err, tail(log))
}

// tail is the end of a log, introduced by its name; empty if there is nothing in it.
func tail(path string) string {
	data, err := os.ReadFile(path)
	text := strings.TrimSpace(string(data))
	if err != nil || text == "" {
		return ""
	}
	if len(text) > tailBytes {
		text = "…" + strings.ToValidUTF8(text[len(text)-tailBytes:], "")
	}
	return fmt.Sprintf("\n--- %s ---\n%s", path, text)
}
