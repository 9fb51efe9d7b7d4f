package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// defaultPrefix begins all keys unless the URL names another one.
const defaultPrefix = "weir"

// defaultTimeout bounds a dial, a read and a write unless the URL says otherwise: a store that takes longer is of no use
// to a stream.
const defaultTimeout = 2 * time.Second

// sweepKeys is how many keys are looked at and removed at a time.
const sweepKeys = 1000

// Store is a connection to a store. It is safe for concurrent use.
type Store struct {
	client *redis.Client
	prefix string
	shown  string // the URL without its password
}

// Space is the part of a store that belongs to the tasks of one operator in one deployment.
type Space struct {
	Job, Operator string
	Epoch         uint32
	// ValueBytes is the size of every value.
	ValueBytes int
}

// Open returns a store by its URL,
//
//	redis://user:password@host:port/database?prefix=weir&read_timeout=2s
//
// (rediss:// with TLS, unix:// by socket; all options of go-redis are understood). Nothing is connected yet: see Check.
// An error matches ErrURL.
func Open(rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		var reason *url.Error // its text would repeat the URL, and the password with it
		if errors.As(err, &reason) {
			err = reason.Err
		}
		return nil, fmt.Errorf("%w: %w; want redis://host:6379/0, with user, colon, password and @ in front of the host if it asks for them", ErrURL, err)
	}
	q := u.Query()
	prefix := defaultPrefix
	if q.Has("prefix") {
		prefix = q.Get("prefix")
		q.Del("prefix")
		u.RawQuery = q.Encode()
	}
	o, err := redis.ParseURL(u.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; want redis://host:6379/0, with user, colon, password and @ in front of the host if it asks for them", ErrURL, u.Redacted(), err)
	}
	for name, d := range map[string]*time.Duration{"dial_timeout": &o.DialTimeout, "read_timeout": &o.ReadTimeout, "write_timeout": &o.WriteTimeout} {
		if !q.Has(name) {
			*d = defaultTimeout
		}
	}
	o.Protocol = 2
	o.DisableIdentity = true
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	// State written twice is the same state, but a try that timed out may still be carried out after a later one.
	o.MaxRetries = -1
	o.DialerRetries = 1
	// Whoever calls is told each error; the client's own lines on standard error would only disturb the display.
	logging.Disable()
	return &Store{client: redis.NewClient(o), prefix: url.QueryEscape(prefix), shown: u.Redacted()}, nil
}

// Close ends all connections. Calls under way fail.
func (s *Store) Close() error { return s.client.Close() }

// Check says whether the store can be reached, lets the user in, takes a write, gives it back and would keep it, and if
// not, why. It leaves nothing behind.
func (s *Store) Check(ctx context.Context, job string) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return s.explain("connect", err)
	}
	if err := s.keeps(ctx); err != nil {
		return s.explain("ask whether it keeps what it holds", err)
	}
	probe := s.prefix + ":" + url.QueryEscape(job) + ":probe"
	if err := s.client.HSet(ctx, probe, "probe", "1").Err(); err != nil {
		return s.explain("try a write", err)
	}
	value, err := s.client.HGet(ctx, probe, "probe").Result()
	if err == nil && value != "1" {
		err = fmt.Errorf("%w: wrote 1 and read %q", ErrUnfit, value)
	}
	if err != nil {
		return s.explain("read what was written", err)
	}
	return s.explain("remove the trial", s.client.Del(ctx, probe).Err())
}

// keeps says why a store would drop state when its memory is full. Policies named volatile- drop only what has an end of
// its life set, which state has not.
func (s *Store) keeps(ctx context.Context) error {
	info, err := s.info(ctx, "memory")
	if errors.Is(causeOf(err), ErrAuth) {
		return nil // users without the right to ask are let in all the same
	}
	if err != nil {
		return err
	}
	if p := info["maxmemory_policy"]; info["maxmemory"] != "0" && strings.HasPrefix(p, "allkeys") {
		return fmt.Errorf("%w: with maxmemory-policy %s it drops state when it is full", ErrUnfit, p)
	}
	return nil
}

// Usage is what a store's process has used, as it says itself.
type Usage struct {
	CPU time.Duration
	// RSSBytes is its resident memory now.
	RSSBytes int64
}

// ErrNoUsage says that a store does not tell what it uses.
var ErrNoUsage = errors.New("the store does not tell what it uses")

// Usage asks the store what its process has used, for whoever it worked. An error may match ErrNoUsage.
func (s *Store) Usage(ctx context.Context) (u Usage, err error) {
	cpu, err := s.info(ctx, "cpu")
	if err != nil {
		return u, s.explain("ask for its use of the processor", err)
	}
	memory, err := s.info(ctx, "memory")
	if err != nil {
		return u, s.explain("ask for its use of memory", err)
	}
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(cpu[field], 64)
		if err != nil {
			return u, s.explain("ask for its use of the processor", fmt.Errorf("%w: no %s", ErrNoUsage, field))
		}
		u.CPU += time.Duration(seconds * float64(time.Second))
	}
	if u.RSSBytes, err = strconv.ParseInt(memory["used_memory_rss"], 10, 64); err != nil {
		return u, s.explain("ask for its use of memory", fmt.Errorf("%w: no used_memory_rss", ErrNoUsage))
	}
	return u, nil
}

// info returns a section of the store's report about itself, by field.
func (s *Store) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := s.client.Info(ctx, section).Result()
	if err != nil {
		return nil, err
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			fields[name] = value
		}
	}
	return fields, nil
}

// space returns the beginning of the names of an operator's hashes, up to the colon before the group.
func (s *Store) space(sp *Space) string {
	return s.prefix + ":" + url.QueryEscape(sp.Job) + ":" + url.QueryEscape(sp.Operator) + ":" + strconv.FormatUint(uint64(sp.Epoch), 10) + ":"
}

// batch is a batch of keys dealt to their groups, in the order in which the groups come first.
type batch struct {
	groups []uint32
	index  [][]int // by position in groups: positions of the keys
}

func deal(groups []uint32) batch {
	var b batch
	at := map[uint32]int{}
	for i, g := range groups {
		k, ok := at[g]
		if !ok {
			k = len(b.groups)
			at[g] = k
			b.groups = append(b.groups, g)
			b.index = append(b.index, nil)
		}
		b.index[k] = append(b.index[k], i)
	}
	return b
}

// Read returns the values of keys, where groups[i] is the key group of keys[i], one after the other: sp.ValueBytes bytes
// each, zeros for a key that is not there. It takes one trip.
func (s *Store) Read(ctx context.Context, sp *Space, groups []uint32, keys []uint64) ([]byte, error) {
	b := deal(groups)
	space := s.space(sp)
	pipe := s.client.Pipeline()
	answers := make([]*redis.SliceCmd, len(b.groups))
	for k, g := range b.groups {
		fields := make([]string, len(b.index[k]))
		for j, i := range b.index[k] {
			fields[j] = strconv.FormatUint(keys[i], 10)
		}
		answers[k] = pipe.HMGet(ctx, space+strconv.FormatUint(uint64(g), 10), fields...)
	}
	what := fmt.Sprintf("read %d values of %s", len(keys), sp.Operator)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, s.explain(what, err)
	}
	values := make([]byte, len(keys)*sp.ValueBytes)
	for k := range b.groups {
		for j, v := range answers[k].Val() {
			text, there := v.(string)
			if !there {
				continue
			}
			if len(text) != sp.ValueBytes {
				return nil, s.explain(what, fmt.Errorf("%w: key %d has a value of %d bytes, want %d",
					ErrType, keys[b.index[k][j]], len(text), sp.ValueBytes))
			}
			copy(values[b.index[k][j]*sp.ValueBytes:], text)
		}
	}
	return values, nil
}

// Write sets the values of keys, in the form in which Read returns them. When it returns nil, the store has taken them;
// after an error some may have been written. It takes one trip.
func (s *Store) Write(ctx context.Context, sp *Space, groups []uint32, keys []uint64, values []byte) error {
	b := deal(groups)
	space := s.space(sp)
	pipe := s.client.Pipeline()
	for k, g := range b.groups {
		pairs := make([]any, 0, 2*len(b.index[k]))
		for _, i := range b.index[k] {
			pairs = append(pairs, strconv.FormatUint(keys[i], 10), values[i*sp.ValueBytes:(i+1)*sp.ValueBytes])
		}
		pipe.HSet(ctx, space+strconv.FormatUint(uint64(g), 10), pairs...)
	}
	_, err := pipe.Exec(ctx)
	return s.explain(fmt.Sprintf("write %d values of %s", len(keys), sp.Operator), err)
}

// Sweep removes everything that a job has left in the store and says how many hashes that were. It looks again until it
// finds nothing: what a worker sent just before it was killed may still come in.
func (s *Store) Sweep(ctx context.Context, job string) (removed int, err error) {
	pattern := s.prefix + ":" + url.QueryEscape(job) + ":*" // escaped names hold no other wildcard
	for {
		n, err := s.sweepOnce(ctx, job, pattern)
		if removed += n; err != nil || n == 0 {
			return removed, err
		}
	}
}

func (s *Store) sweepOnce(ctx context.Context, job, pattern string) (removed int, err error) {
	for cursor := uint64(0); ; {
		keys, next, err := s.client.Scan(ctx, cursor, pattern, sweepKeys).Result()
		if err != nil {
			return removed, s.explain("look for what job "+job+" has left", err)
		}
		if len(keys) > 0 {
			// Unlinked rather than deleted: a large hash would hold others up.
			n, err := s.client.Unlink(ctx, keys...).Result()
			if err != nil {
				return removed, s.explain("remove what job "+job+" has left", err)
			}
			removed += int(n)
		}
		if cursor = next; cursor == 0 {
			return removed, nil
		}
	}
}
