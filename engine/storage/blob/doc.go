// Package blob is the room of checkpoints in object stores: the file system of package storage on a bucket, and the
// opening of addresses. It is apart from storage because the libraries behind it are large, so that only programs that
// want object stores carry them.
//
// An object appears whole when its upload is over, or never, so files need no temporary names; a store of that kind keeps
// what it has acknowledged, so nothing needs syncing; and directories are only the parts of names.
//
// Folders, also file:///FOLDER, stay with storage.OS: the library's own driver for folders never syncs, so a crash of
// the machine could take back a checkpoint that was said to be complete. The names of files are the same in either.
//
// May import: engine/storage, gocloud.dev/blob, the client of S3, standard library.
package blob
