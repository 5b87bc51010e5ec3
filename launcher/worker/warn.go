package worker

import (
	"fmt"
	"io"

	"github.com/scalebench/scalebench/metrics/clean"
	"github.com/scalebench/scalebench/metrics/redact"
)

// Warn prints a message of the worker. Servers, files and names of others may have a part in its
// text: control characters are escaped, and secrets are removed.
func Warn(w io.Writer, text string) {
	fmt.Fprintln(w, "scalebench-worker:", clean.Lines(redact.Text(text)))
}
