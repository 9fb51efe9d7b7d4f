package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strings"
)

// The limits of size.
const (
	maxFuncLines = 70
	maxFileLines = 600
	maxMethods   = 3
)

// bannedImports are, of the standard library, what pure rooms may not import.
var bannedImports = []string{"os", "net", "sync", "syscall", "crypto/rand", "math/rand", "log", "log/slog", "runtime", "os/exec"}

// bannedCalls are, by package, the functions that pure rooms may not use. Of math/rand/v2 only what makes a seeded
// source is allowed.
var bannedCalls = map[string]*regexp.Regexp{
	"time":         regexp.MustCompile(`^(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTicker|NewTimer)$`),
	"math/rand/v2": regexp.MustCompile(`^(Int|IntN|Int32|Int32N|Int64|Int64N|Uint32|Uint32N|Uint64|Uint64N|UintN|Uint|N|Float32|Float64|NormFloat64|ExpFloat64|Perm|Shuffle)$`),
	"fmt":          regexp.MustCompile(`^(Print|Println|Printf|Scan|Scanln|Scanf)$`),
}

// checkPure keeps pure rooms from the outside world.
func checkPure(t *tree, table []room) (vs []violation) {
	const rule = "pure"
	for _, f := range t.files {
		r, ok := roomOf(f.dir(), table)
		if f.test || !ok || !r.pure {
			continue
		}
		local := map[string]string{} // name in the file → import path
		for _, im := range f.ast.Imports {
			name := importPath(im)
			for _, b := range bannedImports {
				if name == b || b != "math/rand" && strings.HasPrefix(name, b+"/") {
					vs = append(vs, violation{rule, t.where(im.Pos()), f.dir() + " is pure and may not import " + name})
				}
			}
			local[localName(im)] = name
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				vs = append(vs, violation{rule, t.where(n.Pos()), f.dir() + " is pure and may not start a goroutine"})
			case *ast.SelectStmt, *ast.SendStmt, *ast.ChanType:
				vs = append(vs, violation{rule, t.where(n.Pos()), f.dir() + " is pure and may not use channels"})
			case *ast.SelectorExpr:
				x, isName := n.X.(*ast.Ident)
				if !isName {
					break
				}
				if banned := bannedCalls[local[x.Name]]; banned != nil && banned.MatchString(n.Sel.Name) {
					vs = append(vs, violation{rule, t.where(n.Pos()), f.dir() + " is pure and may not use " + x.Name + "." + n.Sel.Name})
				}
			}
			return true
		})
	}
	return vs
}

var versionRE = regexp.MustCompile(`^v[0-9]+$`)

// localName returns the name by which a file knows an import.
func localName(im *ast.ImportSpec) string {
	if im.Name != nil {
		return im.Name.Name
	}
	parts := strings.Split(importPath(im), "/")
	if last := len(parts) - 1; last > 0 && versionRE.MatchString(parts[last]) {
		return parts[last-1]
	}
	return parts[len(parts)-1]
}

// checkSizes holds functions and files against their limits, and interfaces against theirs.
func checkSizes(t *tree) (vs []violation) {
	for _, f := range t.files {
		if f.lines > maxFileLines {
			vs = append(vs, violation{"file size", f.path, fmt.Sprintf("%d lines, want at most %d", f.lines, maxFileLines)})
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				lines := t.lines(n)
				if f.test {
					lines -= t.tableLines(n)
				}
				if lines > maxFuncLines {
					vs = append(vs, violation{"function size", t.where(n.Pos()), fmt.Sprintf("%s has %d lines, want at most %d", n.Name.Name, lines, maxFuncLines)})
				}
			case *ast.TypeSpec:
				i, is := n.Type.(*ast.InterfaceType)
				if is && !f.test && i.Methods.NumFields() > maxMethods {
					vs = append(vs, violation{"interface size", t.where(n.Pos()), fmt.Sprintf("%s has %d methods, want at most %d", n.Name.Name, i.Methods.NumFields(), maxMethods)})
				}
			}
			return true
		})
	}
	return vs
}

// lines returns how many lines n takes.
func (t *tree) lines(n ast.Node) int {
	return t.fset.Position(n.End()).Line - t.fset.Position(n.Pos()).Line + 1
}

// tableLines returns how many lines of n are tables: literals of slices and maps. A table of cases may be long.
func (t *tree) tableLines(n ast.Node) (sum int) {
	ast.Inspect(n, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		switch lit.Type.(type) {
		case *ast.ArrayType, *ast.MapType:
			sum += t.lines(lit)
			return false
		}
		return true
	})
	return sum
}

// checkState allows at package level only what never changes: no init, and no variable that is written to anywhere in
// its package or whose value is not a sentinel, a compiled pattern, embedded data or a literal table.
func checkState(t *tree) (vs []violation) {
	const rule = "package state"
	packages, dirs := t.packages()
	for _, dir := range dirs {
		written := writtenNames(packages[dir])
		for _, f := range packages[dir] {
			for _, d := range f.ast.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					if d.Name.Name == "init" && d.Recv == nil {
						vs = append(vs, violation{rule, t.where(d.Pos()), "func init; say it where it is used"})
					}
				case *ast.GenDecl:
					vs = append(vs, checkVars(t, d, written, rule)...)
				}
			}
		}
	}
	return vs
}

func checkVars(t *tree, d *ast.GenDecl, written map[string]bool, rule string) (vs []violation) {
	if d.Tok != token.VAR {
		return nil
	}
	for _, s := range d.Specs {
		v := s.(*ast.ValueSpec)
		embedded := strings.Contains(commentText(d.Doc)+commentText(v.Doc), "//go:embed")
		for i, name := range v.Names {
			switch {
			case name.Name == "_":
			case written[name.Name]:
				vs = append(vs, violation{rule, t.where(name.Pos()), "package-level variable " + name.Name + " is written to"})
			case embedded || zeroArray(v):
			case i >= len(v.Values) || !constant(v.Values[i]):
				vs = append(vs, violation{rule, t.where(name.Pos()), "package-level variable " + name.Name + " is neither sentinel, pattern nor literal table"})
			}
		}
	}
	return vs
}

// zeroArray says whether a declaration is of an array of zeroes, such as padding.
func zeroArray(v *ast.ValueSpec) bool {
	a, ok := v.Type.(*ast.ArrayType)
	return ok && a.Len != nil && len(v.Values) == 0
}

func commentText(g *ast.CommentGroup) string {
	if g == nil {
		return ""
	}
	s := ""
	for _, c := range g.List {
		s += c.Text + "\n"
	}
	return s
}

// constructors make values that are never changed.
var constructors = map[string]bool{
	"errors.New": true, "fmt.Errorf": true, "regexp.MustCompile": true, "crc32.MakeTable": true, "strings.NewReplacer": true,
	"template.Must": true, "math.Log": true, "math.Sqrt": true, "time.Unix": true,
}

// constant says whether an initial value is one that need not change.
func constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit, *ast.BasicLit, *ast.FuncLit:
		return true
	case *ast.BinaryExpr:
		return constant(e.X) && constant(e.Y)
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok {
				return constructors[x.Name+"."+s.Sel.Name]
			}
		}
	}
	return false
}

// writtenNames are the names that files assign to, directly or through an index or a field, or whose address they take.
// Local variables of the same name count too; a package-level name should not be hidden anyway.
func writtenNames(files []*file) map[string]bool {
	out := map[string]bool{}
	write := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
			case *ast.SelectorExpr:
				e = x.X
			case *ast.StarExpr:
				e = x.X
			case *ast.ParenExpr:
				e = x.X
			case *ast.Ident:
				out[x.Name] = true
				return
			default:
				return
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, l := range n.Lhs {
						write(l)
					}
				}
			case *ast.IncDecStmt:
				write(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					write(n.X)
				}
			}
			return true
		})
	}
	return out
}

// leftovers are what may not be left lying about. The patterns are put together so that they do not match here.
var leftovers = map[string]*regexp.Regexp{
	"unfinished work":    regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b`),
	"path of a machine":  regexp.MustCompile(`(^|[^A-Za-z0-9_.])/(wo` + `rk|ro` + `ot|home/[a-z]+|tmp/no` + `tes)/`),
	"host of a registry": regexp.MustCompile(`\b(proxy\.gol` + `ang\.org|pypi\.or` + `g|registry\.np` + `mjs)\b`),
}

// checkLeftovers reads every text, line by line.
func checkLeftovers(t *tree) (vs []violation) {
	look := func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			for what, re := range leftovers {
				if m := re.FindString(line); m != "" {
					vs = append(vs, violation{what, fmt.Sprintf("%s:%d", name, i+1), fmt.Sprintf("%q", strings.TrimSpace(m))})
				}
			}
		}
	}
	for _, f := range t.files {
		look(f.path, f.text)
	}
	for name, text := range t.texts {
		look(name, text)
	}
	return vs
}
