// Package remote is the room of the external state store's client: it reads and writes keyed state of operators whose
// state lives outside the tasks, in any server that speaks RESP (Redis, Valkey, or the one in package server).
//
// # Layout of the keys
//
// The state of one key group is one hash:
//
//	<prefix>:<job>:<operator>:<epoch>:<group>   field: the key in decimal   value: the state's bytes
//
// Names are escaped as in a URL's query, so that none contains a colon. The epoch is the one in which the tasks were
// deployed: a job that rolled back starts from empty state, and what a worker of before the rollback still writes goes
// where nobody reads. Hashes rather than plain keys, since a read or a write of a key that holds something else is then an
// error of the server; MGET would call it absent, and SET would overwrite it.
//
// A batch of records is one pipeline with one HMGET or HSET a key group: one trip, however many records.
//
// May import: github.com/redis/go-redis/v9 and the standard library.
package remote
