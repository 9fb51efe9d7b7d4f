// Package schema is the notice board: it publishes the JSON Schema of results.json, and embeds it, so that any program
// or test can check real output against the contract.
//
// May import: the standard library.
package schema

import _ "embed"

//go:embed results.schema.json
var results []byte

// Results returns a copy of the JSON Schema (draft 2020-12) of results.json.
func Results() []byte { return append([]byte(nil), results...) }

// ResultsID is the $id of the schema.
const ResultsID = "https://github.com/weir-bench/weir/reports/schema/results.schema.json"
