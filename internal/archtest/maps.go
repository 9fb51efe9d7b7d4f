package archtest

import (
	"go/ast"
	"go/token"
	"strings"
)

// checkMapOrder finds, in pure rooms, loops over maps, whose order is random. A loop is fine when a comment on its line,
// or on the one above, says why the order does not matter (with the word "order"), or when its body only fills another
// map, deletes, or counts. Types are guessed from the declarations of the package and, for exported fields, of the whole
// module.
func checkMapOrder(t *tree, table []room) (vs []violation) {
	const rule = "map order"
	packages, dirs := t.packages()
	var all []*file
	for _, dir := range dirs {
		all = append(all, packages[dir]...)
	}
	exported, _ := fieldsOf(all)
	for _, dir := range dirs {
		if r, ok := roomOf(dir, table); !ok || !r.pure {
			continue
		}
		fields, others := fieldsOf(packages[dir])
		for name := range exported {
			if ast.IsExported(name) && !others[name] {
				fields[name] = true
			}
		}
		for _, f := range packages[dir] {
			lines := strings.Split(f.text, "\n")
			for _, d := range f.ast.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok || fn.Body == nil {
					continue
				}
				locals, sorted := mapLocals(fn), sortedNames(fn)
				ast.Inspect(fn.Body, func(n ast.Node) bool {
					r, ok := n.(*ast.RangeStmt)
					if !ok || !isMap(r.X, fields, locals) || harmless(r.Body, sorted) {
						return true
					}
					line := t.fset.Position(r.Pos()).Line
					near := lines[line-1]
					if line > 1 {
						near = lines[line-2] + near
					}
					if i := strings.Index(near, "//"); i < 0 || !strings.Contains(near[i:], "order") {
						vs = append(vs, violation{rule, t.where(r.Pos()), "ranges over a map; sort the keys, or say why the order does not matter"})
					}
					return true
				})
			}
		}
	}
	return vs
}

// fieldsOf returns the names of struct fields that are maps, and of those that are not.
func fieldsOf(files []*file) (maps, others map[string]bool) {
	maps, others = map[string]bool{}, map[string]bool{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			s, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range s.Fields.List {
				kind := others
				if _, ok := field.Type.(*ast.MapType); ok {
					kind = maps
				}
				for _, name := range field.Names {
					kind[name.Name] = true
				}
			}
			return true
		})
	}
	return maps, others
}

// mapLocals are a function's parameters, results and variables that are maps.
func mapLocals(fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if _, ok := n.Type.(*ast.MapType); ok {
				for _, name := range n.Names {
					out[name.Name] = true
				}
			}
		case *ast.ValueSpec:
			if _, ok := n.Type.(*ast.MapType); ok {
				for _, name := range n.Names {
					out[name.Name] = true
				}
			}
		case *ast.AssignStmt:
			for i, l := range n.Lhs {
				if name, ok := l.(*ast.Ident); ok && i < len(n.Rhs) && makesMap(n.Rhs[i]) {
					out[name.Name] = true
				}
			}
		}
		return true
	})
	return out
}

func makesMap(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		_, is := e.Type.(*ast.MapType)
		return is
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.Ident); ok && f.Name == "make" && len(e.Args) > 0 {
			_, is := e.Args[0].(*ast.MapType)
			return is
		}
	}
	return false
}

func isMap(e ast.Expr, fields, locals map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return locals[e.Name]
	case *ast.SelectorExpr:
		return fields[e.Sel.Name]
	}
	return makesMap(e)
}

// sortedNames are the variables that a function sorts, with package sort or slices.
func sortedNames(fn *ast.FuncDecl) map[string]bool {
	out := map[string]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		s, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		x, ok := s.X.(*ast.Ident)
		name, ok2 := call.Args[0].(*ast.Ident)
		if ok && ok2 && (x.Name == "sort" || x.Name == "slices" && strings.HasPrefix(s.Sel.Name, "Sort")) {
			out[name.Name] = true
		}
		return true
	})
	return out
}

// harmless says that a loop's statements give the same in any order: they fill or empty a map at the loop's key, count
// up, or collect what is sorted.
func harmless(body *ast.BlockStmt, sorted map[string]bool) bool {
	for _, s := range body.List {
		switch s := s.(type) {
		case *ast.IncDecStmt:
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok {
				return false
			}
			if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "delete" {
				return false
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue // gone with the turn
			}
			if len(s.Lhs) != 1 {
				return false
			}
			switch l := s.Lhs[0].(type) {
			case *ast.IndexExpr:
			case *ast.Ident:
				if !sorted[l.Name] {
					return false
				}
			default:
				return false
			}
		case *ast.IfStmt:
			if s.Else != nil || s.Init != nil || !harmless(s.Body, sorted) {
				return false
			}
		case *ast.BranchStmt:
		case *ast.ReturnStmt:
			for _, r := range s.Results { // the same answer whichever comes first
				if id, ok := r.(*ast.Ident); !ok || id.Name != "true" && id.Name != "false" {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}
