package workloads

import (
	"cmp"
	"fmt"

	"github.com/weir-bench/weir/workloads/arrivals"
	"github.com/weir-bench/weir/workloads/keys"
	"github.com/weir-bench/weir/workloads/replay"
	"github.com/weir-bench/weir/workloads/rng"
)

// maxFannedKeys bounds the list of keys of a scaled-out trace.
const maxFannedKeys = 1 << 26

func (r *Replay) read() (*replay.Trace, error) {
	return replay.Read(r.Path, replay.Options{
		Format: r.Format, Key: r.Key, Time: r.Time, Value: r.Value, Size: r.Size, Unit: r.Unit,
		SkipBad: r.OnBadRow == "skip",
	})
}

// readTrace reads the spec's trace if anything is replayed from it.
func (b *builder) readTrace() (err error) {
	s := &b.spec
	if s.Kind != KindReplay && (s.Arrivals.Kind != ArriveReplay || s.Arrivals.Replay.Path != "") {
		return nil
	}
	b.trace, err = s.Replay.read()
	return err
}

// note remembers that rows of a trace were left out.
func (b *builder) note(r *Replay, t *replay.Trace) {
	if t.Skipped > 0 {
		b.w.notes = append(b.w.notes, fmt.Sprintf("%s: %d bad rows were skipped, %d read", r.Path, t.Skipped, t.Rows))
	}
}

func (b *builder) recordedArrivals() (arrivals.Process, error) {
	r, t := &b.spec.Replay, b.trace
	if own := &b.spec.Arrivals.Replay; own.Path != "" {
		var err error
		if t, err = own.read(); err != nil {
			return nil, err
		}
		r = own
		b.note(r, t)
	}
	if !r.Loop {
		b.endsAfter(t.Rows)
	}
	return arrivals.Replayed(t.Times, cmp.Or(r.Speed, 1), r.Loop), nil
}

// recordedKeys sets the distribution, IDs and names from the trace.
func (b *builder) recordedKeys() error {
	w, t, r := b.w, b.trace, &b.spec.Replay
	b.note(r, t)
	fan := uint64(max(1, r.Scale))
	if n := uint64(len(t.Keys)) * fan; n > maxFannedKeys {
		return fmt.Errorf("scale the keys of %s: %d keys × %d are more than %d; lower replay.scale", r.Path, len(t.Keys), fan, maxFannedKeys)
	}
	w.dist = keys.Sequence(t.Ranks)
	list, ranks := t.Keys, map[uint64]uint64{}
	if fan > 1 {
		w.dist = keys.Fan(w.dist, fan, b.seed(labelReplay))
		list = make([]uint64, 0, uint64(len(t.Keys))*fan)
		for _, key := range t.Keys {
			list = append(list, key)
			for part := uint64(1); part < fan; part++ {
				list = append(list, rng.At(rng.Derive(key, part), part))
			}
		}
	}
	for rank, key := range list {
		if other, taken := ranks[key]; taken {
			return fmt.Errorf("scale the keys of %s: keys %d and %d have the same hash; change replay.scale", r.Path, other, rank)
		}
		ranks[key] = uint64(rank)
	}
	w.ids = keys.Listed(list)
	w.name = func(key uint64) (string, bool) {
		rank, ok := ranks[key]
		if !ok {
			return "", false
		}
		name := fmt.Sprint(t.Keys[rank/fan])
		if t.Names != nil {
			name = t.Names[rank/fan]
		}
		if part := rank % fan; part > 0 {
			name = fmt.Sprintf("%s#%d", name, part)
		}
		return name, true
	}
	return nil
}

// recorded adds the trace's values and sizes, and its end.
func (b *builder) recorded(c *composed) {
	c.values = b.trace.Values
	if b.trace.Sizes != nil {
		c.payload = newPayload(nil, b.seed(labelPayload))
		c.payload.sizes = b.trace.Sizes
	}
	if !b.spec.Replay.Loop {
		b.endsAfter(b.trace.Rows)
	}
}

// endsAfter notes that the stream has no more than that many records.
func (b *builder) endsAfter(rows int) {
	if n := uint64(rows); b.w.ends == 0 || n < b.w.ends {
		b.w.ends = n
	}
}

// Ends returns the number of records of a stream that ends, as that of a trace
// which is not looped; ok is false if it goes on for ever.
func (w *Workload) Ends() (records uint64, ok bool) { return w.ends, w.ends > 0 }

// Notes returns what a report should say about how the workload was read, such
// as bad rows that were skipped.
func (w *Workload) Notes() []string { return w.notes }
