package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/mirrorgap/mirrorgap/experiments/runner"
)

// plainInterval is how often progress is printed where there is no terminal to redraw.
const plainInterval = 10 * time.Second

// progress shows how far a run is: on a terminal as one line that is redrawn, elsewhere as plain lines at each new phase and every ten seconds.
type progress struct {
	out      io.Writer
	terminal bool
	columns  int

	drawn   bool
	last    runner.Progress
	printed time.Time
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.terminal = true
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil {
			p.columns = columns
		}
	}
	return p
}

func (p *progress) show(now runner.Progress) {
	if now.Run != p.last.Run || now.Phase != p.last.Phase {
		p.printed = time.Time{}
	}
	p.last = now
	p.line(fmt.Sprintf("%d/%d %s %s %s: %s", now.Run, now.Runs, now.Arm, now.Elapsed.Round(time.Second), phase(now), now.State))
}

// line shows a line: on a terminal at once, elsewhere if the last one was shown long enough ago.
func (p *progress) line(line string) {
	switch {
	case p.terminal:
		p.redraw(line)
	case time.Since(p.printed) >= plainInterval:
		fmt.Fprintln(p.out, line)
		p.printed = time.Now()
	}
}

func phase(p runner.Progress) string {
	if p.Phase == "" {
		return "starting"
	}
	return p.Phase
}

// redraw writes over the line before; a longer line than the terminal is wide would leave its first part behind at each redraw.
func (p *progress) redraw(line string) {
	if p.columns > 0 && len(line) >= p.columns {
		line = line[:p.columns-1]
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s", line)
	p.drawn = true
}

// done ends the line that is being redrawn, so that other output can follow.
func (p *progress) done() {
	if p.drawn {
		fmt.Fprintln(p.out)
		p.drawn = false
	}
}
