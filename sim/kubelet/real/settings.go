package real

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// settings are what a kubelet process is told by the process that starts it.
type settings struct {
	NodeName string `json:"nodeName"`
	// Root is the kubelet's root directory, Manifests its static pod folder, ManifestsURL where it gets further static pods; empty: nowhere.
	Root         string `json:"root"`
	Manifests    string `json:"manifests"`
	ManifestsURL string `json:"manifestsURL,omitempty"`
	// Runtime is the endpoint of the container runtime.
	Runtime     string              `json:"runtime"`
	Capacity    corev1.ResourceList `json:"capacity"`
	Allocatable corev1.ResourceList `json:"allocatable"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Taints      []corev1.Taint      `json:"taints,omitempty"`
	// APIUnreachable is how long from its start the process cannot connect to the API server.
	APIUnreachable time.Duration `json:"apiUnreachable,omitempty"`
	API            api           `json:"api"`
}

// api is how to reach the API server: what a client configuration with a certificate consists of.
type api struct {
	Host       string `json:"host"`
	ServerName string `json:"serverName,omitempty"`
	CA         []byte `json:"ca"`
	Cert       []byte `json:"cert"`
	Key        []byte `json:"key"`
}

func apiOf(cfg *rest.Config) api {
	return api{Host: cfg.Host, ServerName: cfg.ServerName, CA: cfg.CAData, Cert: cfg.CertData, Key: cfg.KeyData}
}

func (a api) config() *rest.Config {
	return &rest.Config{
		Host:            a.Host,
		TLSClientConfig: rest.TLSClientConfig{ServerName: a.ServerName, CAData: a.CA, CertData: a.Cert, KeyData: a.Key},
	}
}

// write writes the settings to a file that only this user may read: they hold a key.
func (s *settings) write(path string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write settings of kubelet %s: %w", s.NodeName, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make folder of kubelet %s: %w", s.NodeName, err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("write settings of kubelet %s: %w", s.NodeName, err)
	}
	return nil
}

func readSettings(path string) (*settings, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	s := new(settings)
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	return s, nil
}
