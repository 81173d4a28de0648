package report

import _ "embed"

// SchemaJSON is the JSON Schema (draft 2020-12) of results.json.
//
//go:embed schema/results.schema.json
var SchemaJSON []byte
