// Package storage is the room of durable checkpoints: the file format, the
// directory of a job's checkpoints, the search for the newest one that can be trusted, and
// retention. It runs on a small file system interface, with the operating system and
// a faulty in-memory one behind it.
//
// # Directory
//
//	<dir>/job-<id>/chk-<number>/task-<n>.state
//	                            MANIFEST
//	<dir>/job-<id>/tables/<number>-task-<n>-e<epoch>-<table>.table
//
// A file is written under a temporary name, synced, and renamed. The MANIFEST
// comes last; it lists every file with its size and checksum, so a checkpoint is
// complete if and only if it has one. A directory without MANIFEST was never acknowledged and is
// reported as incomplete; everything else that does not verify is damage.
//
// A task's file may continue files of earlier checkpoints, to which the MANIFEST links with their sizes and checksums. A
// checkpoint is as good as everything that it links to: if one of those files is damaged, it is, and retention keeps
// them all.
//
// # Tables
//
// State on disk consists of immutable tables, and a task's file may say so instead of holding the state: the MANIFEST lists
// its tables with size and checksum. Several checkpoints name one table; its name says for which it was written. On the file
// system of the state it is a hard link, and synced as a file of ours would be; else it is a copy. Retention removes the tables that no
// MANIFEST names and that were written for a checkpoint older than the newest complete one, as later ones may be under way.
//
// # File
//
// A state file is a sequence of records: identity, then sections of data chunks,
// then a trailer. Each record and each section carries its CRC32C (Castagnoli), the
// MANIFEST has that of the whole file. Chunks keep their boundaries: what was
// written as one is read as one.
//
// A Store may be used by several goroutines if its FS may; a Writer or Reader by one.
//
// May import: core, standard library.
package storage
