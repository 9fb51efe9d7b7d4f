package workloads

import (
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// TestSpecReadsFromYAML uses every section of a spec, with unknown fields
// refused.
func TestSpecReadsFromYAML(t *testing.T) {
	const doc = `
kind: zipf
seed: 9
keys: 1000
exponent: 1.1
scramble: true
rate: 20000
arrivals: {kind: flash, spacing: poisson, at: 30s, high: 2s, low: 0.5, peak: 5, period: 60s}
changes:
  - {kind: step, at: 10s, hotKeys: 0.1, hotLoad: 0.9}
  - {kind: drift, at: 20s, for: 5s, exponent: 0.3}
  - {kind: swap, at: 1s, every: 500ms, by: 3}
  - {kind: flash, at: 40s, for: 5s, key: 17, share: 0.25}
  - {kind: grow, from: 10, for: 1m}
catchUp: {policy: limit, factor: 2}
value: {kind: flag, share: 0.1}
payload: {kind: pareto, scale: 200, shape: 0.3, max: 1000000, plus: {kind: gev, location: 30, scale: 8, shape: 0.1}}
state: {kind: lognormal, mean: 16384, sigma: 1, by: load}
service: {kind: exponential, mean: 20000, by: inverse}
`
	var spec Spec
	dec := yaml.NewDecoder(strings.NewReader(doc))
	dec.KnownFields(true)
	if err := dec.Decode(&spec); err != nil {
		t.Fatal(err)
	}
	w := mustOpen(t, spec)
	var kinds []string
	for _, onset := range w.Truth(2 * time.Second) {
		kinds = append(kinds, onset.Kind+"@"+onset.Begin.String())
	}
	if got := strings.Join(kinds, " "); got != "start@0s grow@0s swap@1s swap@1.5s" {
		t.Errorf("truth of 2 s: %s", got)
	}
	if *spec.Arrivals.Low != 0.5 || spec.Changes[2].Every != 500*time.Millisecond || spec.Payload.Plus.Kind != "gev" {
		t.Errorf("read %+v", spec)
	}
}
