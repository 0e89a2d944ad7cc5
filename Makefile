# The one-line entry points. Everything is built from go.mod; nothing is downloaded at run time.
KUBERNETES_VERSION := $(shell go list -m -f '{{.Version}}' k8s.io/kubernetes)
LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)

.PHONY: build
build: bin/assets/etcd ## build bin/mirrorgap and the names by which it serves as etcd, kube-apiserver and kubectl

bin/mirrorgap: FORCE
	go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/mirrorgap

bin/assets/etcd: bin/mirrorgap
	mkdir -p bin/assets
	for tool in etcd kube-apiserver kubectl; do ln -sf ../mirrorgap bin/assets/$$tool; done

.PHONY: FORCE
FORCE:
