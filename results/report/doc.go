// Package report makes of a results folder what others read: a page for people (report.html, self-contained), a text to paste into an issue (report.md),
// figures and series as CSV, and the verdict as JSON and JUnit.
//
// Build reads the traces one after another and keeps their digests; of the first run of each arm it keeps what the timeline and the plots over time show.
// Every sentence of a report is made from these. What cannot be said is not said, or stands there as a warning.
package report
