package kubelet

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
)

// nodeKey is the key, in a context, of the name of the node on whose behalf a request is made.
type nodeKey struct{}

// asNode makes requests by ctx those of the node's own identity, as a real kubelet's are.
func asNode(ctx context.Context, node string) context.Context {
	return context.WithValue(ctx, nodeKey{}, node)
}

// identities impersonates the node that the context of a request names. One client serves all kubelets, and yet the Node authorizer sees each.
type identities struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (i identities) RoundTrip(r *http.Request) (*http.Response, error) {
	node, ok := r.Context().Value(nodeKey{}).(string)
	if !ok {
		return i.next.RoundTrip(r)
	}
	identity := transport.ImpersonationConfig{UserName: "system:node:" + node, Groups: []string{user.NodesGroup}}
	return transport.NewImpersonatingRoundTripper(identity, i.next).RoundTrip(r)
}
