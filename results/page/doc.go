// Package page is the HTML page that all reports stand in: self-contained, without a script, readable in light, dark and print.
package page
