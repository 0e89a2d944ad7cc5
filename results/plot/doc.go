// Package plot draws plain data as SVG, by gonum/plot: curves over time or over a parameter, stacked bars, the timeline of rows, heat maps. It knows
// nothing of runs or metrics.
//
// Each function returns one <svg> element to stand in a page; Document makes a file of it, and Responsive adds a second drawing for narrow screens, whose
// text would otherwise shrink with the picture. Colours are CSS variables with a fallback, so that a page that includes CSS is readable in light, dark and
// print; text takes the page's colour and font. Nothing is told apart by colour alone: curves have dashes and markers, spans and marks have shapes, parts
// of bars have hatches. What is not finite is left out; a plot without data says so. The same data always give the same bytes.
package plot
