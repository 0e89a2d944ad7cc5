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

// redirectLogs sends what Kubernetes code logs without a logger of its own to a file of the run, instead of to the terminal. klog, slog and
// controller-runtime keep their loggers in globals, so there can be only one run at a time in a process.
func redirectLogs(dir string) (restore func(), err error) {
	file, err := os.Create(filepath.Join(dir, "kubernetes.log"))
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for _, setting := range [][2]string{{"logtostderr", "false"}, {"alsologtostderr", "false"}, {"stderrthreshold", "FATAL"}, {"v", "1"}} {
		if err := flags.Set(setting[0], setting[1]); err != nil {
			return nil, fmt.Errorf("set klog's %s: %w", setting[0], err)
		}
	}
	klog.SetOutput(file)
	standard := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(file, nil)))
	controllerruntime.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(file, nil)))
	return func() {
		klog.Flush()
		klog.SetOutput(io.Discard)
		slog.SetDefault(standard)
		_ = file.Close()
	}, nil
}
