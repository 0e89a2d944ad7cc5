package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// The formats of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

// output is the value of the flag --output: how a command writes its result.
type output struct{ format string }

var formats = []string{outputTable, outputJSON, outputYAML}

// addOutput gives a command the flag --output.
func addOutput(cmd *cobra.Command) *output {
	o := &output{format: outputTable}
	cmd.Flags().VarP(o, "output", "o", "`format` of the result: "+strings.Join(formats, ", "))
	return o
}

// String implements pflag.Value.
func (o *output) String() string { return o.format }

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *output) Set(format string) error {
	if !slices.Contains(formats, format) {
		return fmt.Errorf("is none of %s", strings.Join(formats, ", "))
	}
	o.format = format
	return nil
}

// write writes a result: as a table by the function that is given, else as its JSON form has it.
func (o *output) write(w io.Writer, value any, table func(io.Writer) error) error {
	if o.format == outputTable {
		return table(w)
	}
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	data = append(data, '\n')
	if o.format == outputYAML {
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	_, err = w.Write(data)
	return err
}
