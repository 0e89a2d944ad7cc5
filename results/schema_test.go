package results

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	generator "github.com/invopop/jsonschema"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestSchemas holds the published schemas to the types, and the files to the schemas.
func TestSchemas(t *testing.T) {
	for name, tt := range map[string]struct {
		value any
		files []string
	}{
		"summary.schema.json":     {Summary{}, []string{"summary.json"}},
		"run-summary.schema.json": {runFile{}, []string{"gated.summary.json", "ungated.summary.json"}},
	} {
		schema, err := json.MarshalIndent(describe(t, tt.value), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "docs", "schema", name)
		if *update {
			writeFile(t, path, append(schema, '\n'))
		}
		published, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(published, append(schema, '\n')) {
			t.Errorf("%s is not that of the types: run go test with -update", path)
		}
		for _, file := range tt.files {
			data, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, published, data); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if err := validate(t, published, bytes.Replace(data, []byte(`"n": `), []byte(`"n": "x", "was": `), 1)); err == nil {
				t.Errorf("%s: the schema takes a text for a number", name)
			}
		}
	}
}

// describe makes the schema of a type, with its docstrings. New fields may come at any time.
func describe(t *testing.T, value any) *generator.Schema {
	t.Helper()
	reflector := generator.Reflector{AllowAdditionalProperties: true, Mapper: nullable}
	if err := reflector.AddGoComments("github.com/mirrorgap/mirrorgap/results", "."); err != nil {
		t.Fatal(err)
	}
	return reflector.Reflect(value)
}

// nullable is the schema of lists whose items may be null, which the generator does not know.
func nullable(list reflect.Type) *generator.Schema {
	if list != reflect.TypeFor[[]*Observation]() {
		return nil
	}
	observation := generator.Reflector{AllowAdditionalProperties: true, DoNotReference: true, Anonymous: true}
	item := observation.Reflect(Observation{})
	item.Version = ""
	return &generator.Schema{Type: "array", Items: &generator.Schema{AnyOf: []*generator.Schema{item, {Type: "null"}}}}
}

func validate(t *testing.T, schema, data []byte) error {
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
