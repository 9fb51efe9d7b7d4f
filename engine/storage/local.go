package storage

import "fmt"

// Opener opens the file system of an address, whose Dir is the folder in it.
type Opener func(Address) (FS, error)

// OpenLocal opens the folders of this machine, and no object stores.
func OpenLocal(a Address) (FS, error) {
	if !a.Local() {
		return nil, fmt.Errorf("%w: %s: this program reads and writes folders only", ErrAddress, a)
	}
	return OS{}, nil
}
