package verify

import (
	"math/bits"

	"github.com/weir-bench/weir/workloads"
)

// Kind says what the outputs of a sink are.
type Kind string

// The kinds of outputs.
const (
	// RunningCount: a record's value is how many records of its key have been counted, itself included.
	RunningCount Kind = "running count"
	// PassedOn: outputs are records that were passed on. Only their number a key can be checked.
	PassedOn Kind = "passed on"
)

// Oracle checks the outputs of one sink operator. It is not safe for concurrent use.
//
// The usual output is the next of its key, from the channel of the one before: that costs one look into an
// open-addressing table. All else goes by the slow path, which keeps what it needs in a map.
type Oracle struct {
	kind  Kind
	slots []slot
	shift int
	used  int
	// fresh counts answers that came for the first time, right ones and wrong ones.
	fresh                        uint64
	duplicated, wrong, reordered uint64
	atHandOver                   uint64
	handedOver                   func(key uint64) bool
	odd                          map[uint64]*history
	losses                       []func(key uint64) bool // of state, see StateLost
	lives                        map[uint64]*lives
	stamps                       []stamp
	repeats                      []int
	touched                      uint64
}

// slot is what is known of a key, in 16 bytes: the table should stay in the cache. A slot with next 0 is free.
type slot struct {
	key uint64
	// next is the lowest answer that has not come; for PassedOn one more than the number of outputs.
	next uint32
	// stamp is the number of the stamp of the answer before next, 0 when the history has to be looked at.
	stamp uint32
}

// stamp is whence an answer came.
type stamp struct {
	channel int
	epoch   uint32
}

// stampOf returns the number, from 1, of a stamp. There are few.
func (o *Oracle) stampOf(channel int, epoch uint32) uint32 {
	want := stamp{channel, epoch}
	for i := len(o.stamps) - 1; i >= 0; i-- {
		if o.stamps[i] == want {
			return uint32(i + 1)
		}
	}
	o.stamps = append(o.stamps, want)
	return uint32(len(o.stamps))
}

// history is kept of keys whose answers did not come in a row from one channel.
type history struct {
	ahead map[uint64]struct{} // answers above next that have come
	lasts []last
}

// last is the answer that came last from a channel.
type last struct {
	stamp
	answer uint64
}

// maxKeys is for how many keys room is made at the beginning: 2 GiB. More are possible, but the table grows for them while
// answers come, which takes as long as a migration.
const maxKeys = 64 << 20

// New returns an oracle for a sink that gives answers of about the given number of keys.
func New(kind Kind, keys int) *Oracle {
	o := &Oracle{kind: kind, odd: map[uint64]*history{}}
	o.alloc(max(1024, 1<<bits.Len(uint(2*min(max(keys, 1), maxKeys)-1))))
	return o
}

func (o *Oracle) alloc(size int) {
	o.slots, o.shift = make([]slot, size), 64-bits.Len(uint(size-1))
	for i := 0; i < size; i += pageBytes / 16 {
		o.slots[i].key = 0 // the system gives the page now, not while answers come
	}
}

const pageBytes = 4096

// find returns the slot of a key, making one where there is none.
func (o *Oracle) find(key uint64) *slot {
	mask := uint64(len(o.slots) - 1)
	// Fibonacci hashing: one multiplication spreads dense keys well.
	for at := key * 0x9E3779B97F4A7C15 >> o.shift; ; at++ {
		s := &o.slots[at&mask]
		if s.next == 0 {
			if 2*o.used >= len(o.slots) {
				o.grow()
				return o.find(key)
			}
			o.used++
			s.key, s.next = key, 1
			return s
		}
		if s.key == key {
			return s
		}
	}
}

// lookup is find without making a slot.
func (o *Oracle) lookup(key uint64) *slot {
	mask := uint64(len(o.slots) - 1)
	for at := key * 0x9E3779B97F4A7C15 >> o.shift; ; at++ {
		if s := &o.slots[at&mask]; s.next == 0 {
			return nil
		} else if s.key == key {
			return s
		}
	}
}

func (o *Oracle) grow() {
	old := o.slots
	o.alloc(4 * len(old))
	o.used = 0
	for _, s := range old {
		if s.next > 0 {
			*o.find(s.key) = s
		}
	}
}

// Check takes the outputs of one channel in their order; epoch is that of the sink's deployment. It returns the
// positions of those that had come before, which is nearly always none; the slice is valid until the next call.
func (o *Oracle) Check(channel int, epoch uint32, keys []uint64, values []int64) (repeats []int) {
	o.repeats = o.repeats[:0]
	o.fresh += uint64(len(keys))
	if o.kind == PassedOn {
		for _, k := range keys {
			o.find(k).next++
		}
		return nil
	}
	if len(values) != len(keys) {
		o.fresh -= uint64(len(keys))
		o.wrong += uint64(len(keys)) // a count without its number
		return nil
	}
	stamp := o.stampOf(channel, epoch)
	for from := 0; from < len(keys); from += ahead {
		block := keys[from:min(from+ahead, len(keys))]
		o.fetch(block)
		for i, k := range block {
			s, v := o.find(k), uint64(values[from+i])
			if uint64(s.next) == v && s.stamp == stamp {
				s.next++
				continue
			}
			if !o.unusual(s, v, stamp) {
				o.fresh--
				o.repeats = append(o.repeats, from+i)
			}
		}
	}
	return o.repeats
}

// ahead is how many keys are looked up in advance.
const ahead = 64

// fetch touches the slots of keys, so that they come from memory all at once and not one after the other.
func (o *Oracle) fetch(keys []uint64) {
	mask, sum := uint64(len(o.slots)-1), uint64(0)
	for _, k := range keys {
		sum += o.slots[k*0x9E3779B97F4A7C15>>o.shift&mask].key
	}
	o.touched = sum // or the compiler would leave it out
}

// maxAnswer is the highest answer of a key that can be kept.
const maxAnswer = 1<<32 - 2

// unusual takes an answer that is not the next one of its key from the channel of the one before. It says whether the
// answer is new.
func (o *Oracle) unusual(s *slot, v uint64, stamp uint32) (fresh bool) {
	if s.next == 1 && v == 1 && s.stamp == 0 && o.odd[s.key] == nil {
		s.next, s.stamp = 2, stamp // the first of all
		return true
	}
	if v < 1 || v > maxAnswer { // also what is negative
		o.wrong++
		return false
	}
	if len(o.losses) > 0 && o.reborn(s, v) {
		return o.unusual(s, v, stamp)
	}
	h := o.odd[s.key]
	if h == nil {
		h = &history{}
		o.odd[s.key] = h
	}
	if s.stamp != 0 {
		h.came(o.stamps[s.stamp-1], uint64(s.next)-1)
		s.stamp = 0
	}
	if h.came(o.stamps[stamp-1], v) {
		if o.handedOver != nil && o.handedOver(s.key) {
			o.atHandOver++
		} else {
			o.reordered++
		}
	}
	switch _, seen := h.ahead[v]; {
	case v < uint64(s.next) || seen:
		o.duplicated++
	case v > uint64(s.next):
		if h.ahead == nil {
			h.ahead = map[uint64]struct{}{}
		}
		h.ahead[v] = struct{}{}
		fresh = true
	default:
		fresh = true
		s.next++
		for _, ok := h.ahead[uint64(s.next)]; ok; _, ok = h.ahead[uint64(s.next)] {
			delete(h.ahead, uint64(s.next))
			s.next++
		}
	}
	if len(h.ahead) == 0 && v == uint64(s.next)-1 {
		s.stamp = stamp // from here on they may come in a row again
	}
	return fresh
}

// came notes the answer that a channel gave last and says whether it lies before the one noted for the same epoch.
func (h *history) came(from stamp, answer uint64) (backwards bool) {
	for i := range h.lasts {
		l := &h.lasts[i]
		if l.channel == from.channel {
			backwards = l.epoch == from.epoch && answer < l.answer
			l.epoch, l.answer = from.epoch, answer
			return backwards
		}
	}
	h.lasts = append(h.lasts, last{from, answer})
	return false
}

// HandOver names the keys that are being handed over from one task to another; nil: none. Where both tasks feed one sink,
// the last answers of the old owner and the first ones of the new one come by different channels, between which there is
// no order. Such answers are counted apart.
func (o *Oracle) HandOver(keys func(key uint64) bool) { o.handedOver = keys }

// Distinct returns how many answers came, repeats not counted.
func (o *Oracle) Distinct() uint64 { return o.fresh }

// Has says whether answer v of a key has come. For PassedOn it says whether at least v outputs of the key have.
func (o *Oracle) Has(key, v uint64) bool {
	s := o.lookup(key)
	if s == nil {
		return false
	}
	if l := o.lives[key]; l != nil { // which ones are missing cannot be told: it is those after the first loss
		return v <= l.first || v > l.first+l.missing
	}
	if v < uint64(s.next) {
		return true
	}
	h := o.odd[key]
	if h == nil {
		return false
	}
	_, ok := h.ahead[v]
	return ok
}

// Answers counts how the outputs differ from the right ones. Answers that came more than once, with a number that was
// never due, or for a key that the workload does not have, are no answers: Expected = Answered + Lost.
type Answers struct {
	Expected, Answered, Lost, Duplicated, Wrong, Reordered uint64
	// AtHandOver counts answers that came out of order while their key was handed over between two tasks.
	AtHandOver uint64
	// Unconfined counts lost answers of records that were not due in an outage; see Oracle.Unconfined.
	Unconfined uint64
	// OrderKnown says whether Reordered could be counted.
	OrderKnown bool
}

// Plus returns the sums of both.
func (a Answers) Plus(b Answers) Answers {
	return Answers{a.Expected + b.Expected, a.Answered + b.Answered, a.Lost + b.Lost, a.Duplicated + b.Duplicated,
		a.Wrong + b.Wrong, a.Reordered + b.Reordered, a.AtHandOver + b.AtHandOver, a.Unconfined + b.Unconfined, a.OrderKnown && b.OrderKnown}
}

// Answers compares what came with the golden counts, each of which is due times times (a job with several ways from
// its sources to the sink). It is meant for the end of a run, when nothing is under way any more.
func (o *Oracle) Answers(golden *workloads.Tally, times uint64) Answers {
	a := Answers{Duplicated: o.duplicated, Wrong: o.wrong, Reordered: o.reordered, AtHandOver: o.atHandOver, OrderKnown: o.kind == RunningCount}
	for key, n := range golden.All() {
		n *= times
		a.Expected += n
		s := o.lookup(key)
		if s == nil {
			a.Lost += n
			continue
		}
		if l := o.lives[key]; l != nil {
			have := o.came(key)
			l.missing = n - min(have, n)
			a.Answered, a.Wrong, a.Lost = a.Answered+min(have, n), a.Wrong+have-min(have, n), a.Lost+l.missing
			continue
		}
		row := uint64(s.next) - 1
		a.Answered += min(row, n)
		if o.kind == PassedOn {
			a.Duplicated += row - min(row, n)
		} else {
			a.Wrong += row - min(row, n)
		}
		a.Lost += n - min(row, n)
		if h := o.odd[key]; h != nil {
			for v := range h.ahead { // sums: the order does not matter
				if v <= n {
					a.Lost--
					a.Answered++
				} else {
					a.Wrong++
				}
			}
		}
	}
	o.foreign(golden, &a)
	return a
}

// foreign adds the answers of keys that the workload does not have.
func (o *Oracle) foreign(golden *workloads.Tally, a *Answers) {
	for _, s := range o.slots {
		if s.next == 0 || golden.Count(s.key) > 0 {
			continue
		}
		a.Wrong += uint64(s.next) - 1
		if h := o.odd[s.key]; h != nil {
			a.Wrong += uint64(len(h.ahead))
		}
	}
}
