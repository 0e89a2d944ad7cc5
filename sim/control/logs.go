package control

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/flushwriter"
	certutil "k8s.io/client-go/util/cert"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokserver "sigs.k8s.io/kwok/pkg/kwok/server"
)

const readHeaderTimeout = 10 * time.Second

// logHandler answers the kubelet's /containerLogs/<namespace>/<pod>/<container> from the files below dir, read by KWOK's kubelet server.
// KWOK's own routes take one fixed list of log files; here containers come and go, so the list is made for each request.
func logHandler(dir string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, r *http.Request) {
		namespace, pod, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
		options, err := logOptions(r.URL.Query())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		file, err := newestLog(dir, namespace, pod, container)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		server, err := kwokserver.NewServer(kwokserver.Config{Logs: []*internalversion.Logs{{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod},
			Spec:       internalversion.LogsSpec{Logs: []internalversion.Log{{Containers: []string{container}, LogsFile: file, Follow: options.Follow}}},
		}}})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out := flushwriter.Wrap(w)
		if err := server.GetContainerLogs(r.Context(), pod, namespace, container, options, out, out); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}

// logOptions decodes the query as a kubelet does.
func logOptions(query url.Values) (*corev1.PodLogOptions, error) {
	options := &corev1.PodLogOptions{}
	if err := corev1conversion.Convert_url_Values_To_v1_PodLogOptions(&query, options, nil); err != nil {
		return nil, fmt.Errorf("decode log options: %w", err)
	}
	return options, nil
}

// newestLog finds the log of a container; of several pods that had the name one after another it takes the latest.
func newestLog(dir, namespace, pod, container string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, namespace+"_"+pod+"_*", container+".log"))
	if err != nil {
		return "", fmt.Errorf("look for logs: %w", err)
	}
	newest, at := "", time.Time{}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && !info.ModTime().Before(at) {
			newest, at = f, info.ModTime()
		}
	}
	if newest == "" {
		return "", fmt.Errorf("container %s of pod %s/%s has written no log on this simulated node", container, namespace, pod)
	}
	return newest, nil
}

// selfSigned makes a serving certificate; the API server does not verify kubelets' certificates unless told to.
func selfSigned(host string) (*tls.Config, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey(host, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make the kubelet port's certificate: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("load the kubelet port's certificate: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}
