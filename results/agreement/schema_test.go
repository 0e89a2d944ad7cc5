package agreement

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

// TestSchema holds the published schema of JSONFile to its types, and the embedded report to the schema.
func TestSchema(t *testing.T) {
	reflector := generator.Reflector{AllowAdditionalProperties: true, Mapper: outcome}
	if err := reflector.AddGoComments("github.com/mirrorgap/mirrorgap/results/agreement", "."); err != nil {
		t.Fatal(err)
	}
	schema, err := json.MarshalIndent(reflector.Reflect(Report{}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	schema = append(schema, '\n')
	path := filepath.Join("..", "..", "docs", "schema", "agreement.schema.json")
	if *update {
		if err := os.WriteFile(path, schema, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	published, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(published, schema) {
		t.Errorf("%s is not that of the types: run go test with -update", path)
	}
	if err := valid(t, published, committed); err != nil {
		t.Error(err)
	}
	for good, bad := range map[string]string{`"outcome": "`: `"outcome": "perhaps `, `"seed": 1`: `"seed": "one"`, `"timing":`: `"timing": 1, "other":`} {
		changed := bytes.Replace(committed, []byte(good), []byte(bad), 1)
		if bytes.Equal(changed, committed) {
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
	return &generator.Schema{Type: "string", Enum: []any{verdict.Passed.String(), verdict.Failed.String(), verdict.Inconclusive.String()}}
}

func valid(t *testing.T, schema, data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("agreement.schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("agreement.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	file, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(file)
}
