package suites

import (
	"embed"
	"io/fs"
	"sort"
	"strings"
)

//go:embed *.yaml suite.schema.json
var files embed.FS

// Names lists the embedded suites, sorted.
func Names() []string {
	entries, err := fs.Glob(files, "*.yaml")
	if err != nil {
		panic("suites: the pattern of the embedded suites is broken: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e, ".yaml"))
	}
	sort.Strings(names)
	return names
}

// Read gives the text of an embedded suite, and whether there is one of that
// name. The caller owns the bytes.
func Read(name string) ([]byte, bool) {
	if strings.ContainsAny(name, `/\`) {
		return nil, false
	}
	data, err := files.ReadFile(name + ".yaml")
	return data, err == nil
}

// Schema gives the JSON Schema of suite files (draft 2020-12).
func Schema() []byte {
	data, err := files.ReadFile("suite.schema.json")
	if err != nil {
		panic("suites: the embedded schema is missing: " + err.Error())
	}
	return data
}
