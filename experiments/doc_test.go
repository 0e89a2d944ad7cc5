package experiments

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/mirrorgap/mirrorgap/sim/random"
)

// TestEveryFieldIsDocumented holds the reference to the types: each field of the file must be named in it, as code.
func TestEveryFieldIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/experiment-file.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	fields := map[string]bool{}
	collect(reflect.TypeFor[Spec](), fields, map[reflect.Type]bool{})
	if len(fields) < 70 {
		t.Fatalf("found only %d fields: %v", len(fields), fields)
	}
	for name := range fields {
		if !strings.Contains(text, "`"+name+"`") && !strings.Contains(text, "."+name+"`") && !strings.Contains(text, "`"+name+".") {
			t.Errorf("field %s is not in docs/experiment-file.md", name)
		}
	}
	for _, preset := range random.Presets() {
		if !strings.Contains(text, "| `"+string(preset)+"` |") {
			t.Errorf("preset %s is not in docs/experiment-file.md", preset)
		}
	}
}

// collect gathers the json names of the fields of this project's types.
func collect(t reflect.Type, fields map[string]bool, seen map[reflect.Type]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || seen[t] || !strings.Contains(t.PkgPath(), "mirrorgap") {
		return
	}
	seen[t] = true
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = true
		}
		collect(f.Type, fields, seen)
	}
}

// TestEveryFieldOfSweepsIsDocumented holds docs/sweeps.md to the types.
func TestEveryFieldOfSweepsIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../docs/sweeps.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[SweepSpec](), reflect.TypeFor[Parameter](), reflect.TypeFor[Value]()} {
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			fields[name] = true
		}
	}
	for name := range fields {
		if !strings.Contains(string(data), "`"+name+"`") {
			t.Errorf("field %s is not in docs/sweeps.md", name)
		}
	}
	for _, name := range DefaultShow() {
		if !strings.Contains(string(data), "`"+name+"`") {
			t.Errorf("%s, which is shown by default, is not in docs/sweeps.md", name)
		}
	}
}
