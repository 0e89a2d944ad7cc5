package real

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// announcement is a line on a kubelet's standard output: a pod that it rejected.
type announcement struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// announcements writes announcements, one at a time.
type announcements struct {
	mu  sync.Mutex
	out io.Writer
}

func (a *announcements) write(line announcement) {
	data, err := json.Marshal(line)
	if err != nil { // of strings it does not fail
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = a.out.Write(append(data, '\n')) // who reads is gone, and this process ends too
}

// announcer is a kubelet's event recorder that also announces rejections. The kubelet makes an event of each, in rejectPod, but no event says that it is
// one: the reasons are the admission handlers', of which there is no list.
type announcer struct {
	record.EventRecorderLogger
	announcements *announcements
}

// rejecting is the function of the kubelet that rejects a pod (pkg/kubelet/kubelet.go).
const rejecting = "k8s.io/kubernetes/pkg/kubelet.(*Kubelet).rejectPod"

// Event implements record.EventRecorder.
func (a announcer) Event(object apiruntime.Object, eventType, reason, message string) {
	a.announce(object, reason, message)
	a.EventRecorderLogger.Event(object, eventType, reason, message)
}

// Eventf implements record.EventRecorder.
func (a announcer) Eventf(object apiruntime.Object, eventType, reason, format string, args ...any) {
	a.announce(object, reason, fmt.Sprintf(format, args...))
	a.EventRecorderLogger.Eventf(object, eventType, reason, format, args...)
}

// WithLogger implements record.EventRecorderLogger.
func (a announcer) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	return announcer{a.EventRecorderLogger.WithLogger(logger), a.announcements}
}

func (a announcer) announce(object apiruntime.Object, reason, message string) {
	pod, ok := object.(*corev1.Pod)
	if !ok || !calledFrom(rejecting) {
		return
	}
	a.announcements.write(announcement{pod.Namespace, pod.Name, string(pod.UID), reason, message})
}

// calledFrom tells whether a function is among the callers of the caller's caller.
func calledFrom(function string) bool {
	const above, depth = 4, 3 // runtime.Callers, calledFrom, announce and Event; then whoever called Event, and a little above
	callers := make([]uintptr, depth)
	frames := runtime.CallersFrames(callers[:runtime.Callers(above, callers)])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, function) {
			return true
		}
		if !more {
			return false
		}
	}
}
