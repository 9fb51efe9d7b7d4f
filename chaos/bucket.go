package chaos

import (
	"sync"
	"time"
)

// creditTime is how much unused time a bucket keeps: what a late timer loses is made up, and no burst is longer.
const creditTime = 10 * time.Millisecond

// bucket is a token bucket in its virtual-scheduling form (GCRA, ITU-T I.371): it knows when the bytes that were let
// in have all left. It is safe for concurrent use; connections that share a link share one.
type bucket struct {
	mu   sync.Mutex
	free time.Time
}

// take lets n bytes in at a rate above 0 and returns when the last of them has left, which may have passed.
func (b *bucket) take(now time.Time, n int, bytesPerSecond int64) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	if earliest := now.Add(-creditTime); b.free.Before(earliest) {
		b.free = earliest
	}
	b.free = b.free.Add(time.Duration(float64(n) / float64(bytesPerSecond) * float64(time.Second)))
	return b.free
}

// pieceBytes is how much is let in at once, 5 ms worth of bytes, so that a slow link drips instead of gushing.
func pieceBytes(bytesPerSecond int64) int {
	if bytesPerSecond == 0 {
		return chunkBytes
	}
	return int(max(256, min(chunkBytes, bytesPerSecond/200)))
}
