package archtest

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
)

// room is one line of the import table.
type room struct {
	// path is a package within the module, or with "/…" behind it that package and all below it that have no line of
	// their own.
	path string
	// pure rooms are kept from the outside world: no file, socket, clock, goroutine, lock or global random source.
	pure bool
	// uses are the packages of the module that may be imported, in the same notation; modules those of others.
	uses    []string
	modules []string
}

// rooms is the import table of ARCHITECTURE.md. Test files are free.
func rooms() []room {
	return []room{
		{path: "engine/core", pure: true},
		{path: "engine/state", pure: true, uses: []string{"engine/core"}},
		{path: "engine/state/pebble", uses: []string{"engine/core", "engine/state"}, modules: []string{"github.com/cockroachdb/pebble"}},
		{path: "engine/state/remote", modules: []string{"github.com/redis/go-redis/v9"}},
		{path: "engine/state/remote/server", modules: []string{"github.com/tidwall/redcon"}},
		{path: "engine/operator", pure: true, uses: []string{"engine/core", "engine/state"}},
		{path: "engine/model", pure: true},
		{path: "engine/migration", pure: true, uses: []string{"engine/core", "engine/model"}},
		{path: "engine/migration/detect", pure: true},
		{path: "engine/migration/planner", pure: true, uses: []string{"engine/core", "engine/model"}},
		{path: "engine/recovery", pure: true, uses: []string{"engine/core", "engine/model"}},
		{path: "engine/recovery/criticality", pure: true, uses: []string{"engine/core", "engine/model"}, modules: []string{"gonum.org/v1/gonum"}},
		{path: "engine/task", pure: true, uses: []string{"engine/core", "engine/state", "engine/operator"}},
		{path: "engine/coord", pure: true, uses: []string{"engine/core", "engine/model", "engine/operator", "engine/task", "engine/migration/…", "engine/recovery/…"}},
		{path: "engine/storage", uses: []string{"engine/core"}},
		{path: "engine/storage/blob", uses: []string{"engine/storage"}, modules: []string{"gocloud.dev", "github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go"}},
		{path: "engine/durable", uses: []string{"engine/core", "engine/state", "engine/storage", "engine/task", "engine/coord"}},
		{path: "engine/sim", pure: true, uses: []string{"engine/core", "engine/state", "engine/operator", "engine/model", "engine/migration/…", "engine/recovery/…", "engine/task", "engine/coord", "engine/storage", "engine/durable"}},
		{path: "engine/host", uses: []string{"engine/…"}, modules: []string{"golang.org/x/sys"}},

		{path: "workloads/…", uses: []string{"engine/core", "workloads/…"}, modules: []string{"gopkg.in/yaml.v3", "github.com/klauspost/compress"}},
		{path: "chaos/…", modules: []string{"golang.org/x/sys"}},

		{path: "suites", modules: nil},
		{path: "suites/spec", pure: true, modules: []string{"gopkg.in/yaml.v3"}},
		{path: "suites/spec/load", uses: []string{"suites/spec", "workloads/…"}},
		{path: "suites/progress", modules: []string{"github.com/vbauerster/mpb/v8"}},
		{path: "suites/…", uses: []string{"engine/…", "workloads/…", "chaos/…", "suites/…", "reports/…"}, modules: []string{"golang.org/x/sys"}},
		{path: "docker/…", uses: []string{"chaos/…", "suites/spec"}, modules: []string{"github.com/testcontainers/testcontainers-go", "github.com/docker"}},

		{path: "reports", modules: nil},
		{path: "reports/stats", pure: true, modules: []string{"github.com/HdrHistogram/hdrhistogram-go"}},
		{path: "reports/…", uses: []string{"reports/…"}, modules: []string{"github.com/HdrHistogram/hdrhistogram-go", "github.com/olekukonko/tablewriter"}},

		{path: "internal/…", uses: []string{"internal/…"}},
		{path: "cmd/…", uses: []string{"…"}, modules: []string{"github.com/spf13/cobra", "github.com/spf13/pflag", "golang.org/x/term"}},
	}
}

// covers says whether pattern (see room.path) covers the package.
func covers(pattern, pkg string) bool {
	if pattern == "…" {
		return true
	}
	base, below := strings.CutSuffix(pattern, "/…")
	return pkg == base || below && strings.HasPrefix(pkg, base+"/")
}

// roomOf returns the line of a package: its own, or else the longest that covers it.
func roomOf(pkg string, table []room) (found room, ok bool) {
	for _, r := range table {
		if covers(r.path, pkg) && (!ok || len(strings.TrimSuffix(r.path, "/…")) > len(strings.TrimSuffix(found.path, "/…"))) {
			found, ok = r, true
		}
	}
	return found, ok
}

func coversAny(patterns []string, pkg string) bool {
	for _, p := range patterns {
		if covers(p, pkg) {
			return true
		}
	}
	return false
}

// checkImports holds imports against the table. The harness side of internal/need and other helpers of tests is for
// tests only, so no room but internal may import internal.
func checkImports(t *tree, table []room) (vs []violation) {
	const rule = "import table"
	for _, f := range t.files {
		if f.test {
			continue
		}
		r, ok := roomOf(f.dir(), table)
		if !ok {
			vs = append(vs, violation{rule, f.path, "package " + f.dir() + " has no line in the import table"})
			continue
		}
		for _, im := range f.ast.Imports {
			name := importPath(im)
			pkg, own := strings.CutPrefix(name, module+"/")
			switch {
			case own && (!coversAny(r.uses, pkg) || strings.HasPrefix(pkg, "internal/") && !strings.HasPrefix(f.dir(), "internal/")):
				vs = append(vs, violation{rule, t.where(im.Pos()), f.dir() + " may not import " + pkg})
			case !own && !standard(name) && !moduleAllowed(r.modules, name):
				vs = append(vs, violation{rule, t.where(im.Pos()), f.dir() + " may not import " + name})
			}
		}
	}
	return vs
}

func importPath(im *ast.ImportSpec) string {
	name, err := strconv.Unquote(im.Path.Value)
	if err != nil {
		panic(err) // the parser has read it
	}
	return name
}

// standard says whether an import path is of the standard library: its first element has no dot.
func standard(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return !strings.Contains(first, ".")
}

func moduleAllowed(modules []string, name string) bool {
	for _, m := range modules {
		if name == m || strings.HasPrefix(name, m+"/") {
			return true
		}
	}
	return false
}

var mayImportRE = regexp.MustCompile(`(?s)May import: (.*?)\.\n*$`)

// checkDocs asks for a doc.go in each package whose comment ends with a "May import:" line that names what is imported.
func checkDocs(t *tree) (vs []violation) {
	const rule = "doc.go"
	packages, dirs := t.packages()
	for _, dir := range dirs {
		doc := ""
		for _, f := range packages[dir] {
			if strings.HasSuffix(f.path, "/doc.go") && f.ast.Doc != nil {
				doc = f.ast.Doc.Text()
			}
		}
		m := mayImportRE.FindStringSubmatch(doc)
		if m == nil {
			vs = append(vs, violation{rule, dir + "/doc.go", "no package comment that ends with a line 'May import: ….'"})
			continue
		}
		for _, f := range packages[dir] {
			for _, im := range f.ast.Imports {
				if pkg, own := strings.CutPrefix(importPath(im), module+"/"); own && !named(m[1], pkg) {
					vs = append(vs, violation{rule, t.where(im.Pos()), "imports " + pkg + ", which the package comment does not name"})
				}
			}
		}
	}
	return vs
}

// named says whether the words of a "May import:" line name the package: by path, by its last element, by its top-level
// folder, or with "everything", "under …", "below …" or "except …".
func named(words, pkg string) bool {
	words = strings.ReplaceAll(words, "\n", " ")
	words, except, _ := strings.Cut(words, " except ")
	for _, w := range splitWords(except) {
		if w == pkg {
			return false
		}
	}
	last := pkg[strings.LastIndex(pkg, "/")+1:]
	all := splitWords(words)
	for i, w := range all {
		below := i > 0 && (all[i-1] == "under" || all[i-1] == "below")
		wing := !strings.Contains(w, "/") && strings.HasPrefix(pkg, w+"/")
		if w == pkg || w == last || wing || w == "everything" && (i+1 == len(all) || all[i+1] != "under") || below && strings.HasPrefix(pkg, w+"/") {
			return true
		}
	}
	return false
}

func splitWords(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ,;()", r) })
}
