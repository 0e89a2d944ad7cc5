package page

import (
	_ "embed" // the template
	"fmt"
	"html/template"
	"io"

	"github.com/mirrorgap/mirrorgap/results/plot"
)

//go:embed page.html.tmpl
var frame string

//go:embed style.css
var styleSheet string

// Page is a self-contained HTML page.
type Page struct {
	Title string
	// Body is everything below the title.
	Body template.HTML
}

// CSS is the page's style sheet.
func (Page) CSS() template.CSS { return template.CSS(plot.CSS() + styleSheet) } // both are our own

// Write writes the page. It loads nothing, and its Content-Security-Policy forbids that.
func (p Page) Write(w io.Writer) error {
	t, err := template.New("page").Parse(frame)
	if err != nil {
		return fmt.Errorf("read the template of pages: %w", err)
	}
	return t.Execute(w, p)
}
