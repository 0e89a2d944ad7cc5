package report

import (
	_ "embed" // the templates
	"fmt"
	"html/template"
	"io"
	"strings"
	texttemplate "text/template"

	"github.com/mirrorgap/mirrorgap/results/page"
)

//go:embed report.html.tmpl
var htmlTemplate string

//go:embed report.md.tmpl
var markdownTemplate string

// HTML writes the report as a page.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("report").Parse(htmlTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the report: %w", err)
	}
	var body strings.Builder
	if err := t.Execute(&body, view{r}); err != nil {
		return fmt.Errorf("make report: %w", err)
	}
	title := "mirrorgap: " + r.Summary.Experiment
	if len(view{r}.Doubts()) > 0 {
		title = "inconclusive: " + title
	}
	return page.Page{Title: title, Body: template.HTML(body.String())}.Write(w) //nolint:gosec // html/template has made it
}

// Markdown writes the report as text to paste into an issue.
func (r *Report) Markdown(w io.Writer) error {
	t, err := texttemplate.New("report").Funcs(texttemplate.FuncMap{"text": markdownText, "cell": markdownCell, "fence": fence}).Parse(markdownTemplate)
	if err != nil {
		return fmt.Errorf("read the template of the report: %w", err)
	}
	return t.Execute(w, view{r})
}

// markdownText keeps what comes from files of others from being markup.
func markdownText(s string) string {
	return strings.NewReplacer("\n", " ", `\`, `\\`, "<", "&lt;", "`", "'", "*", "\\*", "_", "\\_", "[", "\\[", "@", "@\u200b").Replace(s)
}

// markdownCell is text in a table. What is indented stays so.
func markdownCell(s string) string {
	text := strings.ReplaceAll(markdownText(strings.TrimSpace(s)), "|", "\\|")
	if strings.HasPrefix(s, "  ") {
		return "&emsp;" + text
	}
	return text
}

// fence is longer than any in the text, which it can then stand around.
func fence(text string) string {
	longest := 2
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '~' }) {
		longest = max(longest, len(run))
	}
	return strings.Repeat("~", longest+1)
}

// svg passes on a plot, which is markup of our own.
func svg(image []byte, err error) (template.HTML, error) {
	return template.HTML(image), err //nolint:gosec // package plot escapes what comes from others
}
