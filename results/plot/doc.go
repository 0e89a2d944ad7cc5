// Package plot draws plain data as SVG, by gonum/plot: curves over time or over a parameter, stacked bars, the timeline of rows, heat maps. It knows
// nothing of runs or metrics.
//
// Each function returns one <svg> element that can stand in a page or be a file of its own. Colours are CSS variables with a fallback, so that a page
// that includes CSS is readable in light and dark; text takes the page's colour. No plot tells things apart by colour alone: curves have dashes, marks
// have shapes. The same data always give the same bytes.
package plot
