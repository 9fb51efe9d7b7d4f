package spec

// ParseBytes reads a size as suites write it, such as 16KiB. The error says what would be right.
func ParseBytes(s string) (Bytes, error) {
	b, err := parseBytes(s)
	if err != nil {
		return 0, err
	}
	return b, nil
}
