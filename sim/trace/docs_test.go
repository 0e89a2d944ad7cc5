package trace

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentedFormat holds docs/trace.md against the code: it has every kind, and its examples are what a reader reads.
func TestDocumentedFormat(t *testing.T) {
	data, err := os.ReadFile("../../docs/trace.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	for _, kind := range kinds(t) {
		if !strings.Contains(doc, "**"+kind+"**") {
			t.Errorf("docs/trace.md does not describe %s", kind)
		}
	}
	examples := strings.Split(doc, "```json\n")[1:]
	if len(examples) < 20 {
		t.Fatalf("found %d examples in docs/trace.md", len(examples))
	}
	for i, example := range examples {
		example, _, _ = strings.Cut(example, "```")
		var target any = new(Event)
		if i == 0 {
			target = new(Header)
		}
		strict := json.NewDecoder(strings.NewReader(example))
		strict.DisallowUnknownFields()
		if err := strict.Decode(target); err != nil {
			t.Errorf("%s: %v", example, err)
			continue
		}
		again, err := json.Marshal(target)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again, []byte(strings.TrimSpace(example))) {
			t.Errorf("example\n%s\nis written as\n%s", example, again)
		}
	}
}

// kinds lists the values of the constants of type Kind in event.go.
func kinds(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Kind" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, value)
		return true
	})
	if len(found) < 20 {
		t.Fatalf("found only %v in event.go", found)
	}
	return found
}
