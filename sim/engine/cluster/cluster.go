package cluster

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // the ways to log in that a kubeconfig may name
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a cluster that is there.
type Cluster struct {
	// Config is how to reach it.
	Config *rest.Config
	// Name is the kubeconfig's for it, made a DNS label.
	Name string
	// Version is that of its API server; empty before Reach.
	Version string
}

// Find finds out how to reach the cluster, after the rules of kubectl: kubeconfig is a path, or empty for $KUBECONFIG, ~/.kube/config or the ServiceAccount of
// the pod that this is; kubeContext is one of its contexts, or empty for its current one. It does not call the cluster.
func Find(kubeconfig, kubeContext string) (*Cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: kubeContext})
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster: %w: name a kubeconfig with --kubeconfig", err)
	}
	cfg.UserAgent = "mirrorgap-record"
	return &Cluster{Config: cfg, Name: nameOf(loader, kubeContext)}, nil
}

// maxName is the longest DNS label (RFC 1123).
const maxName = 63

var otherThanLabel = regexp.MustCompile(`[^a-z0-9]+`)

// nameOf is the kubeconfig's name of the cluster, made a DNS label; "cluster" if it has none.
func nameOf(loader clientcmd.ClientConfig, kubeContext string) string {
	name := ""
	if raw, err := loader.RawConfig(); err == nil {
		if kubeContext == "" {
			kubeContext = raw.CurrentContext
		}
		if chosen := raw.Contexts[kubeContext]; chosen != nil {
			name = chosen.Cluster
		}
	}
	name = strings.Trim(otherThanLabel.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if name == "" {
		return "cluster"
	}
	return strings.Trim(name[:min(len(name), maxName)], "-")
}

// Reach calls the cluster, to learn its version and whether its nodes and pods may be listed.
func (c *Cluster) Reach(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("reach the cluster at %s: %w", c.Config.Host, err)
	}
	c.Version = version.GitVersion
	one := metav1.ListOptions{Limit: 1}
	if _, err := client.CoreV1().Nodes().List(ctx, one); err != nil {
		return refused("nodes", err)
	}
	if _, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, one); err != nil {
		return refused("pods", err)
	}
	return nil
}

// refused says what to do about an access that was denied.
func refused(what string, err error) error {
	advice := ""
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		advice = ": recording needs the right to list and watch nodes and pods in all namespaces; docs/real-clusters.md has the ClusterRole"
	}
	return fmt.Errorf("list %s: %w%s", what, err, advice)
}
