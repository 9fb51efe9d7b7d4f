package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/redcon"
)

// choose takes SELECT: there is one database.
func (s *Server) choose(c redcon.Conn, args [][]byte) {
	if string(args[0]) != "0" {
		c.WriteError("ERR DB index is out of range")
		return
	}
	c.WriteString("OK")
}

// put keeps value under key in m. Memory of a value of the same size is
// used again, since nobody else holds it.
func (s *Server) put(m map[string][]byte, key, value []byte) {
	old, there := m[string(key)]
	if there && len(old) == len(value) {
		copy(old, value)
		return
	}
	if there {
		s.bytes -= int64(len(old))
	} else {
		s.bytes += int64(len(key) + entryBytes)
	}
	s.bytes += int64(len(value))
	m[string(key)] = slices.Clone(value)
}

// room says whether more can be kept, and answers the client if not. As Redis does, it looks at
// what is kept before the write: the bound is passed by one command at most.
func (s *Server) room(c redcon.Conn) bool {
	if s.options.MaxBytes > 0 && s.bytes >= s.options.MaxBytes {
		c.WriteError(replyFull)
		return false
	}
	return true
}

// hash returns the hash of a name, nil when there is none; ok is false when the name holds a string, and the client knows.
func (s *Server) hash(c redcon.Conn, name []byte) (h map[string][]byte, ok bool) {
	if _, wrong := s.strings[string(name)]; wrong {
		c.WriteError(replyType)
		return nil, false
	}
	return s.hashes[string(name)], true
}

func write(c redcon.Conn, value []byte, there bool) {
	if !there {
		c.WriteNull()
		return
	}
	c.WriteBulk(value)
}

func (s *Server) hget(c redcon.Conn, args [][]byte) {
	if h, ok := s.hash(c, args[0]); ok {
		v, there := h[string(args[1])]
		write(c, v, there)
	}
}

func (s *Server) hmget(c redcon.Conn, args [][]byte) {
	h, ok := s.hash(c, args[0])
	if !ok {
		return
	}
	c.WriteArray(len(args) - 1)
	for _, field := range args[1:] {
		v, there := h[string(field)]
		write(c, v, there)
	}
}

func (s *Server) hset(c redcon.Conn, args [][]byte) {
	h, ok := s.hash(c, args[0])
	if !ok {
		return
	}
	if len(args)%2 == 0 {
		c.WriteError("ERR wrong number of arguments for 'hset' command")
		return
	}
	if !s.room(c) {
		return
	}
	if h == nil {
		h = map[string][]byte{}
		s.hashes[string(args[0])] = h
		s.bytes += int64(len(args[0]) + entryBytes)
	}
	before := len(h)
	for i := 1; i < len(args); i += 2 {
		s.put(h, args[i], args[i+1])
	}
	c.WriteInt(len(h) - before)
}

func (s *Server) hlen(c redcon.Conn, args [][]byte) {
	if h, ok := s.hash(c, args[0]); ok {
		c.WriteInt(len(h))
	}
}

func (s *Server) get(c redcon.Conn, args [][]byte) {
	if _, wrong := s.hashes[string(args[0])]; wrong {
		c.WriteError(replyType)
		return
	}
	v, there := s.strings[string(args[0])]
	write(c, v, there)
}

// mget says, as Redis does, that a name with another kind of value is not there.
func (s *Server) mget(c redcon.Conn, args [][]byte) {
	c.WriteArray(len(args))
	for _, name := range args {
		v, there := s.strings[string(name)]
		write(c, v, there)
	}
}

func (s *Server) set(c redcon.Conn, args [][]byte) { s.mset(c, args) }

func (s *Server) mset(c redcon.Conn, args [][]byte) {
	if len(args)%2 != 0 {
		c.WriteError("ERR wrong number of arguments for 'mset' command")
		return
	}
	if !s.room(c) {
		return
	}
	for i := 0; i < len(args); i += 2 {
		s.removeHash(args[i])
		s.put(s.strings, args[i], args[i+1])
	}
	c.WriteString("OK")
}

func (s *Server) removeHash(name []byte) bool {
	h, there := s.hashes[string(name)]
	if !there {
		return false
	}
	s.bytes -= int64(len(name) + entryBytes)
	for field, v := range h { // a sum: the order does not matter
		s.bytes -= int64(len(field) + len(v) + entryBytes)
	}
	delete(s.hashes, string(name))
	return true
}

func (s *Server) del(c redcon.Conn, args [][]byte) {
	n := 0
	for _, name := range args {
		if v, there := s.strings[string(name)]; there {
			s.bytes -= int64(len(name) + len(v) + entryBytes)
			delete(s.strings, string(name))
			n++
		} else if s.removeHash(name) {
			n++
		}
	}
	c.WriteInt(n)
}

// scan answers with all names at once, so its cursor is always 0. It knows MATCH with one * at the end, and COUNT.
func (s *Server) scan(c redcon.Conn, args [][]byte) {
	prefix, exact := "", false
	for i := 1; i < len(args); i += 2 {
		if i+1 == len(args) {
			c.WriteError(replySyntax)
			return
		}
		switch strings.ToUpper(string(args[i])) {
		case "MATCH":
			p, any := strings.CutSuffix(string(args[i+1]), "*")
			if strings.ContainsAny(p, `*?[\`) {
				c.WriteError("ERR this server matches beginnings of names only, as in MATCH begin*")
				return
			}
			prefix, exact = p, !any
		case "COUNT":
		default:
			c.WriteError(replySyntax)
			return
		}
	}
	var names []string
	add := func(name string) {
		if strings.HasPrefix(name, prefix) && (!exact || name == prefix) {
			names = append(names, name)
		}
	}
	for name := range s.strings { // sorted below
		add(name)
	}
	for name := range s.hashes { // sorted below
		add(name)
	}
	slices.Sort(names)
	c.WriteArray(2)
	c.WriteBulkString("0")
	c.WriteArray(len(names))
	for _, name := range names {
		c.WriteBulkString(name)
	}
}

func (s *Server) flush(c redcon.Conn, _ [][]byte) {
	s.strings, s.hashes, s.bytes = map[string][]byte{}, map[string]map[string][]byte{}, 0
	c.WriteString("OK")
}

func (s *Server) info(c redcon.Conn, _ [][]byte) {
	c.WriteBulkString(fmt.Sprintf("# Memory\r\nused_memory:%d\r\nmaxmemory:%d\r\nmaxmemory_policy:noeviction\r\n# Keyspace\r\ndb0:keys=%d\r\n",
		s.bytes, s.options.MaxBytes, len(s.strings)+len(s.hashes)))
}
