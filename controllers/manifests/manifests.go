package manifests

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// ServiceAccountUser is the user name of the controller's ServiceAccount, for running the controller elsewhere under the same permissions.
const ServiceAccountUser = "system:serviceaccount:kube-system:node-readiness-controller"

// FieldManager is the field manager of Apply.
const FieldManager = "mirrorgap"

const crdName = "nodereadinessrules." + v1alpha1.GroupName

var (
	//go:embed readiness.node.x-k8s.io_nodereadinessrules.yaml
	crd []byte
	//go:embed rbac.yaml
	rbac []byte
	//go:embed deployment.yaml
	deployment []byte
	//go:embed staticpods-readiness-rule.yaml
	staticPodsRule []byte
)

// CRD is the CustomResourceDefinition of NodeReadinessRule, as YAML.
func CRD() []byte { return bytes.Clone(crd) }

// RBAC is the controller's ServiceAccount and its permissions, as YAML documents.
func RBAC() []byte { return bytes.Clone(rbac) }

// Deployment is the controller's Deployment, as YAML; the image is a placeholder.
func Deployment() []byte { return bytes.Clone(deployment) }

// StaticPodsRule is the published rule static-pods-mirrored, as YAML.
func StaticPodsRule() []byte { return bytes.Clone(staticPodsRule) }

// InstallCRD creates or updates the CustomResourceDefinition and waits until the API server serves it. It gives up only when ctx ends or the
// API server refuses.
func InstallCRD(ctx context.Context, cfg *rest.Config) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("register types: %w", err)
	}
	if err := Apply(ctx, cfg, crd); err != nil {
		return err
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("make a client for the CustomResourceDefinition: %w", err)
	}
	if err := wait.PollUntilContextCancel(ctx, servedPollInterval, true, served(c)); err != nil {
		return fmt.Errorf("wait until CustomResourceDefinition %s is served: %w", crdName, err)
	}
	return nil
}

// servedPollInterval is short because everything that uses rules waits for it, and for a second or two only.
const servedPollInterval = 50 * time.Millisecond

// served holds when the definition is established and listing rules works: an informer that starts too early backs off for a second.
func served(c client.Client) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		var definition apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, client.ObjectKey{Name: crdName}, &definition); err != nil {
			return false, err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
				return false, fmt.Errorf("the API server refuses its names: %s", condition.Message)
			}
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return listed(ctx, c)
			}
		}
		return false, nil
	}
}

func listed(ctx context.Context, c client.Client) (bool, error) {
	err := c.List(ctx, &v1alpha1.NodeReadinessRuleList{}, client.Limit(1))
	if meta.IsNoMatchError(err) || client.IgnoreNotFound(err) == nil && err != nil {
		return false, nil //nolint:nilerr // established, but this API server's discovery or handler has not caught up
	}
	return err == nil, err
}

// Apply applies the objects in YAML documents server-side, in their order, taking over fields that somebody else owns. The error names the
// object that could not be applied; those before it stay.
func Apply(ctx context.Context, cfg *rest.Config, documents []byte) error {
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(documents), len(documents))
	for {
		var object unstructured.Unstructured
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("decode manifest: %w", err)
		case len(object.Object) == 0:
			continue
		}
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(&object), client.FieldOwner(FieldManager), client.ForceOwnership); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
}
