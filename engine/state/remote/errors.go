package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// What can be wrong with a store. Errors of a Store match one of them (errors.Is) wherever the cause is known.
var (
	ErrURL  = errors.New("not the URL of a store")
	ErrDown = errors.New("the store is down")
	ErrSlow = errors.New("the store is too slow")
	ErrFull = errors.New("the store is full")
	ErrAuth = errors.New("the store refuses the credentials")
	ErrType = errors.New("the store holds something else under the same name")
	// ErrUnfit is a store that would not keep what it is given, or lets only others write.
	ErrUnfit = errors.New("the store is not fit to keep state")
)

// remedies are what people can do, by cause.
func remedy(cause error) string {
	switch cause {
	case ErrDown:
		return "start it, or correct host and port"
	case ErrSlow:
		return "give it more time with ?read_timeout=10s, or look at its load"
	case ErrFull:
		return "raise its memory limit, or let it hold less"
	case ErrAuth:
		return "write user, colon, password and @ in front of the host"
	case ErrType:
		return "choose another prefix with ?prefix=name, or another database"
	case ErrUnfit:
		return "give a primary of its own, no member of a cluster, with maxmemory-policy noeviction"
	}
	return ""
}

// explain names the cause of an error and the remedy.
func (s *Store) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range [...]error{ErrType, ErrUnfit} {
		if errors.Is(err, known) {
			return fmt.Errorf("store %s: %s: %w; %s", s.shown, what, err, remedy(known))
		}
	}
	cause := causeOf(err)
	if cause == nil {
		return fmt.Errorf("store %s: %s: %w", s.shown, what, err)
	}
	return fmt.Errorf("store %s: %s: %w (%w); %s", s.shown, what, cause, err, remedy(cause))
}

// replies are the beginnings of a server's error replies, by cause.
var replies = [...]struct {
	begin string
	cause error
}{
	{"OOM", ErrFull},
	{"MISCONF", ErrFull}, // it cannot write its snapshots, which is its disk's doing
	{"NOAUTH", ErrAuth},
	{"WRONGPASS", ErrAuth},
	{"NOPERM", ErrAuth},
	{"ERR invalid password", ErrAuth},
	{"ERR Client sent AUTH", ErrAuth},
	{"ERR AUTH", ErrAuth},
	{"WRONGTYPE", ErrType},
	{"LOADING", ErrDown},
	{"READONLY", ErrUnfit},
	{"MOVED", ErrUnfit},
	{"CLUSTERDOWN", ErrUnfit},
}

func causeOf(err error) error {
	var reply redis.Error
	if errors.As(err, &reply) {
		for _, r := range replies {
			if strings.HasPrefix(reply.Error(), r.begin) {
				return r.cause
			}
		}
	}
	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout),
		errors.As(err, &network) && network.Timeout():
		return ErrSlow
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return ErrDown
	}
	return nil
}
