// Command mirrorgap reproduces the race between static pods and the scheduler on a real control plane with simulated nodes, with and without a
// readiness gate, and measures it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/mirrorgap/mirrorgap/checker"
	"github.com/mirrorgap/mirrorgap/experiments"
	"github.com/mirrorgap/mirrorgap/results"
	"github.com/mirrorgap/mirrorgap/sim/engine/live"
)

// Exit codes. They are part of the interface: see docs/cli.md.
const (
	exitOK = 0
	// exitFailed: a threshold of the experiment is not met; kubelet model and real kubelet differ.
	exitFailed = 1
	// exitBadInput: the command line or a file is wrong; nothing was run.
	exitBadInput = 2
	// exitInconclusive: a run did not settle, so its figures are lower bounds; or a gate has no verdict.
	exitInconclusive = 3
	// exitError: a run failed; what it recorded is kept.
	exitError = 4
	// exitInterrupted: Ctrl-C, SIGTERM or SIGHUP, as a shell reports it.
	exitInterrupted = 130
)

func main() {
	live.DispatchTool(os.Args)
	live.TuneGC()
	signal.Ignore(syscall.SIGPIPE) // a reader that went away must not end a run and lose what it recorded
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := newCommand().ExecuteContext(ctx)
	code := exitCode(err, ctx.Err() != nil)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, message(err, code))
	}
	os.Exit(code)
}

// message is what a person is told about an error. What is wrong in files stands as it is, so that editors find file and line.
func message(err error, code int) string {
	switch {
	case errors.As(err, new(*experiments.BadInput)):
		return err.Error()
	case code == exitInterrupted:
		return fmt.Sprintf("mirrorgap: interrupted: %v", err)
	}
	return fmt.Sprintf("mirrorgap: %v", err)
}

// errNotSettled is returned by commands that made runs of which one ended by its time limit.
var errNotSettled = errors.New("the run did not settle, so its figures are lower bounds")

// usageError marks a wrong command line.
type usageError struct{ error }

func exitCode(err error, interrupted bool) int {
	var judged interface {
		error
		code() int
	}
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &judged):
		return judged.code()
	case errors.As(err, new(*experiments.BadInput)), errors.As(err, new(*results.InputError)), errors.As(err, new(usageError)),
		errors.Is(err, checker.ErrBadInput):
		return exitBadInput
	case errors.Is(err, errNotSettled), errors.Is(err, errInconclusive):
		return exitInconclusive
	case interrupted:
		return exitInterrupted
	}
	return exitError
}
