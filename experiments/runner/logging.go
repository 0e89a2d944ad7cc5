package runner

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
)

// componentVerbosity is klog's -v for the components' own logs: 2 is what production clusters use.
const componentVerbosity = 2

// SilenceLogs drops what Kubernetes code logs without a logger of its own, which would go to the terminal. While a run takes place, that goes to
// a file of the run. klog, slog and controller-runtime keep their loggers in globals, so there can be only one run at a time in a process.
func SilenceLogs() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL", "v": "1"} {
		if err := flags.Set(name, value); err != nil {
			panic(fmt.Sprintf("klog has no flag %s: %v", name, err)) // a change in klog, found by the first test
		}
	}
	logTo(io.Discard)
}

func logTo(w io.Writer) {
	klog.SetOutput(w)
	handler := slog.NewTextHandler(w, nil)
	slog.SetDefault(slog.New(handler))
	controllerruntime.SetLogger(logr.FromSlogHandler(handler))
}

// redirectLogs sends to a file of the run what SilenceLogs would drop.
func redirectLogs(dir string) (restore func(), err error) {
	file, err := os.Create(filepath.Join(dir, "kubernetes.log"))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	logTo(file)
	return func() {
		klog.Flush()
		logTo(io.Discard)
		_ = file.Close() // a log is a convenience; the trace is the record
	}, nil
}
