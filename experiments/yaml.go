package experiments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// parseYAML parses the single document of a file.
func parseYAML(file string, data []byte) (*yaml.Node, *Problem) {
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, &Problem{File: file, Message: "is not a text file: it must be YAML or JSON in UTF-8"}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) || err == nil && isNull(doc.Content[0]) {
		return nil, &Problem{File: file, Message: "is empty"}
	} else if err != nil {
		return nil, syntaxProblem(file, data, err)
	}
	if err := decoder.Decode(&next); err == nil {
		return nil, &Problem{File: file, Line: next.Line,
			Message: "a second document begins here: put each object into a file, or an entry, of its own"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(file, data, err)
	}
	if _, err := expandedSize(doc.Content[0], map[*yaml.Node]int{}); err != nil {
		return nil, &Problem{File: file, Line: err.node.Line, Message: err.message}
	}
	return doc.Content[0], nil
}

// maxNodes bounds what the aliases of a file may expand to. The largest file of a sensible experiment has some 10,000 nodes; a file of
// maxFileSize without aliases may have more, and is then refused as well.
const maxNodes = 1_000_000

// expandedSize counts the nodes of a tree with its aliases expanded, so that whoever walks the tree need not fear an anchor that contains itself,
// or one that multiplies. Known sizes are kept by node; that of a node which is being counted is -1.
func expandedSize(n *yaml.Node, known map[*yaml.Node]int) (int, *nodeError) {
	n = resolve(n)
	if size, ok := known[n]; ok {
		if size < 0 {
			return 0, &nodeError{n, fmt.Sprintf("the anchor %s contains itself", n.Anchor)}
		}
		return size, nil
	}
	known[n] = -1
	total := 1
	for _, child := range n.Content {
		size, err := expandedSize(child, known)
		if err != nil {
			return 0, err
		}
		if total += size; total > maxNodes {
			return 0, &nodeError{n, fmt.Sprintf("has more than %d values, aliases counted each time", maxNodes)}
		}
	}
	known[n] = total
	return total, nil
}

// yamlLine is where package yaml puts the line of a problem.
var yamlLine = regexp.MustCompile(`^line (\d+): `)

func syntaxProblem(file string, data []byte, err error) *Problem {
	p := &Problem{File: file, Message: strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := yamlLine.FindStringSubmatch(p.Message); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		p.Message = p.Message[len(m[0]):]
	}
	lines := bytes.Split(data, []byte("\n"))
	for i := max(p.Line-1, 0); i < min(p.Line+1, len(lines)); i++ {
		if line := bytes.TrimLeft(lines[i], " "); bytes.HasPrefix(line, []byte("\t")) {
			p.Line, p.Message = i+1, "indented with a tab: YAML wants spaces"
			break
		}
	}
	return p
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// kindName is what a node is, in the words of an error.
func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.ShortTag() {
	case "!!str":
		return "a string"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	}
	return strconv.Quote(n.Value)
}

// nodeError is what is wrong with a node.
type nodeError struct {
	node    *yaml.Node
	message string
}

// Error implements error.
func (e *nodeError) Error() string { return e.message }

// toJSON writes a node as JSON, keys sorted. Its error is a *nodeError.
func toJSON(n *yaml.Node) (json.RawMessage, error) {
	value, err := toValue(n)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, &nodeError{n, err.Error()}
	}
	return data, nil
}

// toValue makes of a node what package json can write.
func toValue(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.AliasNode:
		return toValue(n.Alias)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			var err error
			if list[i], err = toValue(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return toMap(n)
	}
	return toScalar(n)
}

func toMap(n *yaml.Node) (map[string]any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := checkKey(key); err != nil {
			return nil, err
		}
		if _, ok := m[key.Value]; ok {
			return nil, &nodeError{key, fmt.Sprintf("duplicate key %q", key.Value)}
		}
		var err error
		if m[key.Value], err = toValue(value); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// checkKey refuses keys that JSON does not have.
func checkKey(key *yaml.Node) error {
	if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
		return &nodeError{key, "merge keys (<<) are not supported: write the fields out"}
	}
	if key.Kind != yaml.ScalarNode || isNull(key) {
		return &nodeError{key, "a key must be a string"}
	}
	return nil
}

func toScalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!str", "!!timestamp":
		return n.Value, nil
	case "!!bool", "!!int", "!!float":
		var value any
		if err := n.Decode(&value); err != nil {
			return nil, &nodeError{n, fmt.Sprintf("%q is not a value", n.Value)}
		}
		if x, ok := value.(float64); ok && (math.IsNaN(x) || math.IsInf(x, 0)) {
			return nil, &nodeError{n, fmt.Sprintf("%s is not a number that can be used here", n.Value)}
		}
		return value, nil
	}
	return nil, &nodeError{n, fmt.Sprintf("the tag %s is not supported", n.Tag)}
}

// get returns the value of a key of a mapping node, or nil.
func get(n *yaml.Node, key string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	return nil
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// YAML writes the experiment, such that loading it gives the same experiment.
func (e *Experiment) YAML() ([]byte, error) {
	data, err := toYAML(e)
	if err != nil {
		return nil, fmt.Errorf("write experiment %s: %w", e.Metadata.Name, err)
	}
	return data, nil
}

// toYAML writes a value by its json names.
func toYAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node // JSON is YAML; this way fields keep their order
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	toBlockStyle(&doc)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&doc); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// toBlockStyle drops the style of JSON wherever the text stays unambiguous: the encoder quotes what would not be read as a string, and writes
// several lines as a block.
func toBlockStyle(n *yaml.Node) {
	for _, child := range n.Content {
		toBlockStyle(child)
	}
	if n.Kind != yaml.ScalarNode || plainText.MatchString(n.Value) {
		n.Style = 0
	}
}

// plainText is one or more lines of ASCII, none of which begins or ends with a space.
//
//nolint:gocritic // the range from ! to ~ is all of ASCII that is printed
var plainText = regexp.MustCompile(`^[!-~]([ -~]*[!-~])?(\n[!-~]([ -~]*[!-~])?)*\n?$`)
