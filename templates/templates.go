// Package templates holds the text that scalebench writes for others to read:
// the batch scripts, the report page and the live page. They are plain files so
// that a person can read one, and a site can start its own from it; what fills
// them is where the values come from (package slurm for the scripts,
// metrics/report and launcher/workspace/live for the pages).
package templates

import "embed"

// Files are the templates by file name.
//
//go:embed *.tmpl *.css *.js
var Files embed.FS

// Job is the name in Files of the batch script.
const Job = "job.sh.tmpl"

// Report is the name in Files of the report page. It defines the templates "table" and "facts".
const Report = "report.html.tmpl"

// Live is the name in Files of the live page.
const Live = "live.html.tmpl"

// Style is the name in Files of the style that both pages share; the live page adds LiveStyle and
// LiveScript.
const (
	Style      = "page.css"
	LiveStyle  = "live.css"
	LiveScript = "live.js"
)
