package sweep

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/mirrorgap/mirrorgap/results/page"
)

//go:embed sweep.html.tmpl
var pageTemplate string

// view is what the page is made of.
type view struct {
	*Sweep
	Columns []Column
	Plots   []Plot
}

// Rows are the indices of the lines of the table.
func (v view) Rows() []int {
	rows := make([]int, len(v.Columns[0].Cells))
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// Legend explains the cells.
func (view) Legend() string { return Legend }

// SVG is the drawing of a plot in the page.
func (p Plot) SVG() template.HTML { return template.HTML(p.inPage) } //nolint:gosec // package plot has made it, and escapes

// html writes the sweep as a page that stands by itself.
func (s *Sweep) html(w io.Writer, plots []Plot) error {
	t, err := template.New("sweep").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the page: %w", err)
	}
	var body strings.Builder
	if err := t.Execute(&body, view{s, append(s.labelColumns(), s.metricColumns()...), plots}); err != nil {
		return fmt.Errorf("make page: %w", err)
	}
	return page.Page{Title: "mirrorgap: " + s.Name, Body: template.HTML(body.String())}.Write(w) //nolint:gosec // html/template has made it
}
