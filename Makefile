# Entry points. Everything is built from go.mod; the binary is its own etcd, kube-apiserver and kubectl.
KUBERNETES_VERSION := $(shell go list -m -f '{{.Version}}' k8s.io/kubernetes)
VERSION            ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LINT_VERSION       := v2.15.0
# Without its version Kubernetes calls itself v0.0.0-master, in the API and in reports.
LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES_VERSION) \
	-X github.com/mirrorgap/mirrorgap/experiments/runner.Version=$(VERSION)

# Packages that link Kubernetes components: minutes to build for the first time, and many times that with the race detector.
HEAVY := ./sim/engine/... ./sim/control/... ./sim/kubelet/... ./sim/gate/... ./sim/fleet/... ./experiments/runner/... ./cmd/...
# All others build and test in seconds.
LIGHT  = $(filter-out $(shell go list $(HEAVY)),$(shell go list ./...))

.DEFAULT_GOAL := help
.PHONY: help
help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: run
run: build ## run the canonical experiment, scale-up-3-to-20, both arms (about 4 minutes)
	./bin/mirrorgap run

.PHONY: quick
quick: build ## run the short experiment, both arms (about 1 minute)
	./bin/mirrorgap run quick

.PHONY: build
build: ## build bin/mirrorgap (with the flags of go test, so that both share one build cache)
	go build -ldflags '$(LDFLAGS)' -o bin/mirrorgap ./cmd/mirrorgap

.PHONY: assets
assets: build ## make bin/assets, the folder of etcd, kube-apiserver and kubectl that envtest wants
	@mkdir -p bin/assets
	@for tool in etcd kube-apiserver kubectl; do ln -sf ../mirrorgap bin/assets/$$tool; done

.PHONY: test
test: test-light test-heavy ## run all tests; the light packages under the race detector

.PHONY: test-light
test-light: assets ## test the packages that build in seconds
	go test -race -timeout 20m $(LIGHT)

.PHONY: test-heavy
test-heavy: assets ## test the packages that run Kubernetes components
	go test -p 1 -vet=off -timeout 30m $(HEAVY) # make lint vets them

.PHONY: test-long
test-long: build assets ## run every experiment of the library with its thresholds, and the admission test with 1,000 sequences (about an hour)
	MIRRORGAP_LONG=1 go test -p 1 -vet=off -timeout 60m ./sim/kubelet/differential
	./.ci/long

# make repro-issue-115325: the experiment of a public report (docs/regression.md)
repro-issue-%: build
	./bin/mirrorgap gate issue-$*

.PHONY: bench
bench: build ## benchmarks, in the format that benchstat reads
	go test -run '^$$' -bench . -benchmem -timeout 60m $(LIGHT)
	go test -p 1 -vet=off -run '^$$' -bench . -benchtime 1x -timeout 120m $(HEAVY) # make lint vets them

.PHONY: lint
lint: bin/golangci-lint-$(LINT_VERSION) ## gofmt, go vet and the linters of .golangci.yml
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$unformatted" || { echo "gofmt: $$unformatted"; exit 1; }
	go vet ./...
	$< run ./...

bin/golangci-lint-$(LINT_VERSION):
	GOBIN=$(CURDIR)/bin go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/golangci-lint $@

.PHONY: generate
generate: ## regenerate deepcopy code and the CRD
	go generate ./controllers/...

.PHONY: clean
clean: ## remove what was built and the results
	rm -rf bin out
