// Package server is the room of the embedded state store: a small server that speaks RESP on a loopback address, so that
// state externalisation can be run without installing anything. It keeps hashes and strings in memory, up to a bound, and
// answers as Redis does: also with OOM, NOAUTH, WRONGPASS and WRONGTYPE.
//
// It knows what a store of keyed state needs and no more: PING, AUTH, SELECT, HGET, HMGET, HSET, HLEN, GET, SET, MGET,
// MSET, DEL, UNLINK, SCAN, DBSIZE, FLUSHALL, INFO and QUIT.
//
// May import: github.com/tidwall/redcon and the standard library.
package server
