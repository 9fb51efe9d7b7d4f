package workloads

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weir-bench/weir/workloads/keys"
	"github.com/weir-bench/weir/workloads/measure"
	"github.com/weir-bench/weir/workloads/rng"
)

// Forever is the end of an onset that does not end.
const Forever time.Duration = math.MaxInt64

// Onset is ground truth about skew: from Begin on the shares of the keys are
// different ones.
type Onset struct {
	// Kind is "start" for the shares at the beginning, then that of a Change.
	Kind  string
	Begin time.Duration
	// End is when a drift or growth is complete or a flash crowd is over;
	// Begin if the change is sudden and stays.
	End time.Duration
	// Hot are the most loaded keys once the change is complete (a flash crowd:
	// while it lasts), up to ten, most loaded first.
	Hot []uint64
	// Before and After are the shares of Hot[0] just before Begin and once the
	// change is complete.
	Before, After float64
}

// onsetHot is the number of hot keys that an onset names.
const onsetHot = 10

// Truth returns when and how the shares of the keys change before a time, in
// order; the first entry is the start. It is nil for whole-event generators,
// whose skew is that of their benchmark.
func (w *Workload) Truth(until time.Duration) []Onset {
	if w.dist == nil {
		return nil
	}
	start := keys.Hot(w.dist, onsetHot, 0)
	share := w.dist.Share(start[0], 0)
	onsets := []Onset{{Kind: "start", Hot: w.keysOf(start), Before: share, After: share}}
	for _, p := range keys.Points(w.dist, int64(until)) {
		settled := p.End
		if p.Kind == ChangeFlash {
			settled = p.Begin
		}
		hot := keys.Hot(w.dist, onsetHot, settled)
		onsets = append(onsets, Onset{
			Kind: p.Kind, Begin: time.Duration(p.Begin), End: time.Duration(p.End), Hot: w.keysOf(hot),
			Before: w.dist.Share(hot[0], p.Begin-1), After: w.dist.Share(hot[0], settled),
		})
	}
	return onsets
}

func (w *Workload) keysOf(ranks []uint64) []uint64 {
	ids := slices.Clone(ranks)
	w.ids.Map(ids)
	return ids
}

// Spec returns the spec as it was built, with the preset's values in it.
func (w *Workload) Spec() Spec { return w.spec }

// Keys returns the number of keys there can be, 0 if that is not known.
func (w *Workload) Keys() uint64 {
	if w.dist == nil {
		return 0
	}
	return w.dist.Keys()
}

// Share returns the probability that a record with intended time t has the key.
func (w *Workload) Share(key uint64, t time.Duration) float64 {
	if w.dist == nil {
		return 0
	}
	rank, ok := w.ids.Rank(key)
	if !ok {
		return 0
	}
	return w.dist.Share(rank, int64(t))
}

// KeyName returns what a person would call a key: a word, a trace's key, or the
// number.
func (w *Workload) KeyName(key uint64) string {
	if w.name != nil {
		if name, ok := w.name(key); ok {
			return name
		}
	}
	return strconv.FormatUint(key, 10)
}

// StateBytes returns the size of a key's state, 0 if the spec has none.
func (w *Workload) StateBytes(key uint64) int {
	return int(w.perKey(w.state, w.spec.State.By, labelState, key))
}

// ServiceTime returns how long each of a key's records takes, 0 if the spec has
// no service time.
func (w *Workload) ServiceTime(key uint64) time.Duration {
	return time.Duration(w.perKey(w.service, w.spec.Service.By, labelService, key))
}

// perKey returns a key's value in a distribution. Correlated values go by the
// key's place in the order of load at the start, so that over all keys they
// still follow the distribution.
func (w *Workload) perKey(d measure.Dist, by string, label, key uint64) float64 {
	if d == nil {
		return 0
	}
	if by == "load" || by == "inverse" {
		if rank, ok := w.ids.Rank(key); ok && w.dist != nil && rank < w.dist.Keys() {
			u := (float64(rank) + 0.5) / float64(w.dist.Keys())
			if by == "load" {
				u = 1 - u
			}
			return d.Quantile(u)
		}
	}
	return measure.Draw(d, rng.Derive(w.spec.Seed, label), key)
}
