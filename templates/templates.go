// Package templates holds the text that scalebench writes for others to read:
// the batch scripts and the report page. They are plain files so that a person
// can read one, and a site can start its own from it; what fills them is where
// the values come from (package slurm for the scripts, metrics/report for the
// page).
package templates

import "embed"

// Files are the templates by file name.
//
//go:embed *.tmpl
var Files embed.FS

// Job is the name in Files of the batch script.
const Job = "job.sh.tmpl"

// Report is the name in Files of the report page.
const Report = "report.html.tmpl"
