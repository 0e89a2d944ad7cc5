package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mirrorgap/mirrorgap/results/verdict"
)

// TestVerdictSchema holds the published schema of verdict.json to its types, and the file to the schema. Package results does so for the summaries.
func TestVerdictSchema(t *testing.T) {
	reflector := generator.Reflector{AllowAdditionalProperties: true, Mapper: outcome}
	if err := reflector.AddGoComments("github.com/mirrorgap/mirrorgap/results/report", "../verdict"); err != nil {
		t.Fatal(err)
	}
	schema, err := json.MarshalIndent(reflector.Reflect(verdict.Verdict{}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	schema = append(schema, '\n')
	path := filepath.Join("..", "..", "docs", "schema", "verdict.schema.json")
	if *update {
		writeFile(t, path, schema)
	}
	published, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(published, schema) {
		t.Errorf("%s is not that of the types: run go test with -update", path)
	}
	file, err := os.ReadFile(filepath.Join("testdata", verdict.File))
	if err != nil {
		t.Fatal(err)
	}
	if err := valid(t, published, file); err != nil {
		t.Error(err)
	}
	for good, bad := range map[string]string{`"outcome": "passed"`: `"outcome": "perhaps"`, `"runs": 1`: `"runs": "one"`, `"thresholds":`: `"other":`} {
		changed := bytes.ReplaceAll(file, []byte(good), []byte(bad))
		if bytes.Equal(changed, file) {
			t.Errorf("the file has no %s", good)
		}
		if valid(t, published, changed) == nil {
			t.Errorf("the schema takes %s", bad)
		}
	}
}

// outcome is the schema of what marshals itself as text.
func outcome(value reflect.Type) *generator.Schema {
	if value != reflect.TypeFor[verdict.Outcome]() {
		return nil
	}
	s := &generator.Schema{Type: "string"}
	for _, o := range []verdict.Outcome{verdict.Inconclusive, verdict.Passed, verdict.Failed} {
		s.Enum = append(s.Enum, o.String())
	}
	return s
}

func valid(t *testing.T, schema, data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}
