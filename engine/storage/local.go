package storage

// Opener opens the file system of an address, whose Dir is the folder in it.
type Opener func(Address) (FS, error)

// OpenLocal opens the folders of this machine, and no object stores.
func OpenLocal(a Address) (FS, error) {
	if !a.Local() {
		return nil, &AddressError{a.String(), "is not a folder, and this program has no other storage", "write a folder"}
	}
	return OS{}, nil
}
