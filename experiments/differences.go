package experiments

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Differences lists the fields in which two experiments differ, as "path: a → b" in order of the paths. Descriptions and labels are left out, as they
// change nothing.
func Differences(a, b *Experiment) ([]string, error) {
	left, err := flatten(a)
	if err != nil {
		return nil, err
	}
	right, err := flatten(b)
	if err != nil {
		return nil, err
	}
	paths := maps.Clone(left)
	maps.Copy(paths, right)
	var all []string
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		x, y := left[path], right[path]
		if x != y && !strings.HasPrefix(path, "metadata.labels") && !strings.HasSuffix(path, "description") {
			all = append(all, fmt.Sprintf("%s: %s → %s", path, orUnset(x), orUnset(y)))
		}
	}
	return all, nil
}

func orUnset(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}

// flatten is the experiment as values by path.
func flatten(e *Experiment) (map[string]string, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("compare experiment %s: %w", e.Metadata.Name, err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("compare experiment %s: %w", e.Metadata.Name, err)
	}
	values := map[string]string{}
	var walk func(path string, value any)
	walk = func(path string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, child := range v {
				walk(strings.TrimPrefix(path+"."+key, "."), child)
			}
		case []any:
			for i, child := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), child)
			}
		default:
			values[path] = fmt.Sprint(v)
		}
	}
	walk("", tree)
	return values, nil
}
