package server

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"

	"github.com/tidwall/redcon"
)

// Options of a server. The zero value listens on a free port of the loopback interface, asks for no password and has no
// bound.
type Options struct {
	// Addr is ip:port; empty: 127.0.0.1:0.
	Addr string
	// Password that clients must give; empty: none is asked for.
	Password string
	// MaxBytes bounds what is kept (names, keys, values and entryBytes for each); a write that goes beyond is answered
	// with OOM. 0: no bound.
	MaxBytes int64
}

// entryBytes is what an entry is taken to cost beside its name and value.
const entryBytes = 48

// Server is a running server. It is safe for concurrent use.
type Server struct {
	options  Options
	listener net.Listener
	served   chan error // what serving ended with

	mu      sync.Mutex
	strings map[string][]byte
	hashes  map[string]map[string][]byte
	bytes   int64
}

// Start begins to serve. The caller has to Close the server.
func Start(o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("embedded store: %w", err)
	}
	s := &Server{options: o, listener: listener, served: make(chan error, 1),
		strings: map[string][]byte{}, hashes: map[string]map[string][]byte{}}
	accept := func(c redcon.Conn) bool {
		c.SetContext(&client{in: o.Password == ""})
		return true
	}
	go func() { s.served <- redcon.NewServer(o.Addr, s.serve, accept, nil).Serve(listener) }()
	return s, nil
}

// Addr returns ip:port.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL returns the server's URL, with its password.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr(), Path: "/0"}
	if s.options.Password != "" {
		u.User = url.UserPassword("", s.options.Password)
	}
	return u.String()
}

// Bytes returns the size of what is kept.
func (s *Server) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Close ends all connections and waits until nobody accepts new ones. What was kept is gone.
func (s *Server) Close() error {
	err := s.listener.Close() // which ends Serve, and that the connections
	if served := <-s.served; err == nil {
		err = served
	}
	return err
}

// client is what the server knows of a connection.
type client struct{ in bool }

// The error replies, as Redis words them.
const (
	replyNoAuth    = "NOAUTH Authentication required."
	replyWrongPass = "WRONGPASS invalid username-password pair or user is disabled."
	replyNoPass    = "ERR AUTH <password> called without any password configured. Are you sure your configuration is correct?"
	replyFull      = "OOM command not allowed when used memory > 'maxmemory'."
	replyType      = "WRONGTYPE Operation against a key holding the wrong kind of value"
	replySyntax    = "ERR syntax error"
)

// command is one that the server knows: args are without its name. It is called with the lock held.
type command struct {
	// min and max bound the number of arguments; max -1: none.
	min, max int
	do       func(s *Server, c redcon.Conn, args [][]byte)
}

func commands(name string) (command, bool) {
	switch name {
	case "PING":
		return command{0, 0, func(_ *Server, c redcon.Conn, _ [][]byte) { c.WriteString("PONG") }}, true
	case "SELECT":
		return command{1, 1, (*Server).choose}, true
	case "HGET":
		return command{2, 2, (*Server).hget}, true
	case "HMGET":
		return command{2, -1, (*Server).hmget}, true
	case "HSET":
		return command{3, -1, (*Server).hset}, true
	case "HLEN":
		return command{1, 1, (*Server).hlen}, true
	case "GET":
		return command{1, 1, (*Server).get}, true
	case "SET":
		return command{2, 2, (*Server).set}, true
	case "MGET":
		return command{1, -1, (*Server).mget}, true
	case "MSET":
		return command{2, -1, (*Server).mset}, true
	case "DEL", "UNLINK":
		return command{1, -1, (*Server).del}, true
	case "SCAN":
		return command{1, -1, (*Server).scan}, true
	case "DBSIZE":
		return command{0, 0, func(s *Server, c redcon.Conn, _ [][]byte) { c.WriteInt(len(s.strings) + len(s.hashes)) }}, true
	case "FLUSHALL":
		return command{0, 1, (*Server).flush}, true
	case "INFO":
		return command{0, -1, (*Server).info}, true
	}
	return command{}, false
}

// serve answers one command. Connections are served side by side, commands one after the other.
func (s *Server) serve(c redcon.Conn, cmd redcon.Command) {
	name, args := strings.ToUpper(string(cmd.Args[0])), cmd.Args[1:]
	who, ok := c.Context().(*client)
	if !ok {
		panic("server: a connection without its context")
	}
	switch {
	case name == "QUIT":
		c.WriteString("OK")
		_ = c.Close() // the client has said good-bye
		return
	case name == "AUTH":
		s.auth(c, who, args)
		return
	case !who.in:
		c.WriteError(replyNoAuth)
		return
	}
	known, ok := commands(name)
	if !ok {
		c.WriteError("ERR unknown command '" + name + "'")
		return
	}
	if len(args) < known.min || known.max >= 0 && len(args) > known.max {
		c.WriteError("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known.do(s, c, args)
}

// auth takes AUTH password and AUTH user password; the only user is "default" or none.
func (s *Server) auth(c redcon.Conn, who *client, args [][]byte) {
	if len(args) < 1 || len(args) > 2 {
		c.WriteError(replySyntax)
		return
	}
	password := string(args[len(args)-1])
	user := len(args) == 1 || len(args[0]) == 0 || string(args[0]) == "default"
	switch {
	case s.options.Password == "":
		c.WriteError(replyNoPass)
	case !user || password != s.options.Password:
		c.WriteError(replyWrongPass)
	default:
		who.in = true
		c.WriteString("OK")
	}
}
