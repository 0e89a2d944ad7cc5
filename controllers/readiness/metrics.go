package readiness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/mirrorgap/mirrorgap/controllers/api/v1alpha1"
)

// Metrics are the controller's measurements, under the names of kubernetes-sigs/node-readiness-controller. Counters and histograms are fed by
// the reconcilers; the gauges of nodes and rules are computed from the cache when they are scraped, so that they cannot go stale.
type Metrics struct {
	taintOperations       *prometheus.CounterVec
	evaluationDuration    *prometheus.HistogramVec
	failures              *prometheus.CounterVec
	bootstrapCompleted    *prometheus.CounterVec
	bootstrapDuration     *prometheus.HistogramVec
	reconciliationLatency *prometheus.HistogramVec
	conditionFailures     *prometheus.CounterVec
	lastReconciliation    *prometheus.GaugeVec
	buildInfo             *prometheus.GaugeVec
}

// Operations in node_readiness_taint_operations_total; node_readiness_reconciliation_latency_seconds has them with "_taint" appended.
const (
	operationAdd    = "add"
	operationRemove = "remove"
)

// NewMetrics makes the metrics of one controller. version is what node_readiness_build_info says.
func NewMetrics(version string) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		taintOperations: counter("node_readiness_taint_operations_total",
			"Taints added to and removed from nodes.", "rule", "operation"),
		evaluationDuration: histogram("node_readiness_evaluation_duration_seconds",
			"Time to bring a node to what its rules want, with the writes, for each rule that governs it.", prometheus.DefBuckets, "rule"),
		failures: counter("node_readiness_failures_total",
			"Failed evaluations and writes; conflicts that a retry resolved are not counted.", "rule", "reason"),
		bootstrapCompleted: counter("node_readiness_bootstrap_completed_total",
			"Nodes marked as completed by a bootstrap-only rule.", "rule"),
		bootstrapDuration: histogram("node_readiness_bootstrap_duration_seconds",
			"Time from the creation of a node (resolution 1 s) to its completion.", []float64{1, 5, 10, 30, 60, 120, 300, 600, 1200}, "rule"),
		reconciliationLatency: histogram("node_readiness_reconciliation_latency_seconds",
			"Time from the last transition of the rule's conditions (resolution 1 s) to the taint operation.",
			[]float64{0.01, 0.05, 0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}, "rule", "operation"),
		conditionFailures: counter("node_readiness_condition_failures_total",
			"Evaluations in which a condition did not have the required status. A node that is held adds one whenever it is evaluated.",
			"rule", "condition"),
		lastReconciliation: gauge("node_readiness_rule_last_reconciliation_timestamp_seconds",
			"Unix time of the last report on the rule.", "rule"),
		buildInfo: gauge("node_readiness_build_info", "Always 1.", "version"),
	}
	m.buildInfo.WithLabelValues(version).Set(1)
	return m
}

// Register adds the metrics to the registry, with gauges computed from the reader's cache. The function that it returns takes them out again,
// so that another controller of the same process can register its own.
func (m *Metrics) Register(registry prometheus.Registerer, reader client.Reader) (unregister func(), err error) {
	collectors := []prometheus.Collector{
		m.taintOperations, m.evaluationDuration, m.failures, m.bootstrapCompleted, m.bootstrapDuration, m.reconciliationLatency,
		m.conditionFailures, m.lastReconciliation, m.buildInfo, &cacheCollector{reader},
	}
	var registered []prometheus.Collector
	unregister = func() {
		for _, c := range registered {
			registry.Unregister(c)
		}
	}
	for _, c := range collectors {
		if err := registry.Register(c); err != nil {
			unregister()
			return nil, fmt.Errorf("register metrics (does another controller run with this registry?): %w", err)
		}
		registered = append(registered, c)
	}
	return unregister, nil
}

// forget drops the series of a rule that is gone.
func (m *Metrics) forget(rule string) {
	of := prometheus.Labels{"rule": rule}
	for _, vec := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{
		m.taintOperations, m.evaluationDuration, m.failures, m.bootstrapCompleted, m.bootstrapDuration, m.reconciliationLatency,
		m.conditionFailures, m.lastReconciliation,
	} {
		vec.DeletePartialMatch(of)
	}
}

// evaluated counts the conditions that hold a node.
func (m *Metrics) evaluated(rule string, d Decision) {
	for _, c := range d.Conditions {
		if c.CurrentStatus != c.RequiredStatus {
			m.conditionFailures.WithLabelValues(rule, c.Type).Inc()
		}
	}
}

// operated records a taint operation that has just been written.
func (m *Metrics) operated(rule, operation string, d Decision) {
	m.taintOperations.WithLabelValues(rule, operation).Inc()
	if !d.Since.IsZero() {
		m.reconciliationLatency.WithLabelValues(rule, operation+"_taint").Observe(time.Since(d.Since).Seconds())
	}
}

// completed records that a node of that creation time has just been marked as completed.
func (m *Metrics) completed(rule string, created time.Time) {
	m.bootstrapCompleted.WithLabelValues(rule).Inc()
	m.bootstrapDuration.WithLabelValues(rule).Observe(time.Since(created).Seconds())
}

var (
	rulesTotal = prometheus.NewDesc("node_readiness_rules_total", "Rules in the cluster.", nil, nil)
	ruleNodes  = prometheus.NewDesc("node_readiness_rule_nodes",
		"Nodes that a rule selects, by whether they carry its taint (held) or not (released).", []string{"rule", "state"}, nil)
	nodesByState = prometheus.NewDesc("node_readiness_nodes_by_state",
		"Nodes that a rule selects: ready if its conditions are satisfied or were once (bootstrap-only), else bootstrapping (bootstrap-only) or not_ready.",
		[]string{"rule", "state"}, nil)
)

// cacheCollector counts rules and nodes in the cache.
type cacheCollector struct{ reader client.Reader }

// scrapeTimeout bounds the wait for a cache that does not answer.
const scrapeTimeout = 5 * time.Second

func (c *cacheCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- rulesTotal
	ch <- ruleNodes
	ch <- nodesByState
}

func (c *cacheCollector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout) //nolint:forbidigo // the collector's interface has no context
	defer cancel()
	rules, rulesErr := listRules(ctx, c.reader)
	nodes, nodesErr := listNodes(ctx, c.reader)
	if err := errors.Join(rulesErr, nodesErr); err != nil {
		ch <- prometheus.NewInvalidMetric(rulesTotal, err)
		return
	}
	ch <- prometheus.MustNewConstMetric(rulesTotal, prometheus.GaugeValue, float64(len(rules)))
	for _, rule := range rules {
		held, byState := map[bool]int{}, map[string]int{}
		for i := range nodes {
			if rule.Selects(&nodes[i]) {
				d := Decide(rule.NodeReadinessRule, &nodes[i], true)
				held[d.Tainted]++
				byState[stateOf(rule.NodeReadinessRule, d)]++
			}
		}
		for state, n := range map[string]int{"held": held[true], "released": held[false]} {
			ch <- prometheus.MustNewConstMetric(ruleNodes, prometheus.GaugeValue, float64(n), rule.Name, state)
		}
		for _, state := range []string{stateReady, stateNotReady, stateBootstrapping} {
			ch <- prometheus.MustNewConstMetric(nodesByState, prometheus.GaugeValue, float64(byState[state]), rule.Name, state)
		}
	}
}

const (
	stateReady         = "ready"
	stateNotReady      = "not_ready"
	stateBootstrapping = "bootstrapping"
)

func stateOf(rule *v1alpha1.NodeReadinessRule, d Decision) string {
	switch {
	case d.Completed || d.Satisfied:
		return stateReady
	case bootstrapOnly(rule):
		return stateBootstrapping
	}
	return stateNotReady
}
