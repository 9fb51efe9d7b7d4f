package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// module is the module's path.
const module = "github.com/weir-bench/weir"

// file is one Go file.
type file struct {
	path  string // from the root, with slashes
	test  bool
	lines int
	ast   *ast.File
	text  string
}

// dir returns the path of the file's package within the module.
func (f *file) dir() string { return path.Dir(f.path) }

// tree is parsed source.
type tree struct {
	fset  *token.FileSet
	files []*file
	texts map[string]string // files that are not Go, by path
}

// violation is one breach of one rule.
type violation struct {
	rule, where, what string
}

func (v violation) String() string { return fmt.Sprintf("%s: %s (%s)", v.where, v.what, v.rule) }

// add parses one file into t.
func (t *tree) add(name, text string) error {
	if !strings.HasSuffix(name, ".go") {
		t.texts[name] = text
		return nil
	}
	parsed, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	t.files = append(t.files, &file{path: name, test: strings.HasSuffix(name, "_test.go"),
		lines: strings.Count(text, "\n"), ast: parsed, text: text})
	return nil
}

func newTree() *tree { return &tree{fset: token.NewFileSet(), texts: map[string]string{}} }

// where gives file:line of a position.
func (t *tree) where(p token.Pos) string {
	at := t.fset.Position(p)
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// packages returns the non-test files by package directory, and the directories in order.
func (t *tree) packages() (map[string][]*file, []string) {
	by := map[string][]*file{}
	var dirs []string
	for _, f := range t.files {
		if f.test {
			continue
		}
		if by[f.dir()] == nil {
			dirs = append(dirs, f.dir())
		}
		by[f.dir()] = append(by[f.dir()], f)
	}
	sort.Strings(dirs)
	return by, dirs
}

// textKinds are the files that are read beside Go source; others (traces, pictures, the book) are data.
var textKinds = []string{".md", ".yaml", ".yml", ".json", ".sh", ".tmpl", ".golden", ".mod", ".Dockerfile"}

// isText says whether a file that is not Go is one for people to read.
func isText(name string) bool {
	for _, kind := range textKinds {
		if strings.HasSuffix(name, kind) {
			return true
		}
	}
	return strings.HasPrefix(name, ".ci/")
}

// load reads the source tree at root. Run directories and what hides behind a dot are passed over, except CI.
func load(root string) (*tree, error) {
	t := newTree()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "." && rel != ".ci" && rel != ".github"
			if hidden || rel == "runs" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !strings.HasSuffix(rel, ".go") && !isText(rel) {
			return nil
		}
		text, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return t.add(rel, string(text))
	})
	return t, err
}
