//go:build !linux

package storage

import "os"

func create(path string) (File, error) { return os.Create(path) }
