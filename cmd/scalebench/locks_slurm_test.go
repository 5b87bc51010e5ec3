//go:build slurm && (frameworks || serving)

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/scalebench/scalebench/launcher"
	"github.com/scalebench/scalebench/launcher/rundir"
)

// versions are the versions that rank 0 of a study's first run reported.
func (b *bench) versions(study string, names []string) string {
	b.t.Helper()
	attempts, err := launcher.Attempts(rundir.OpenStudy(filepath.Join(b.dir, "runs"), study))
	if err != nil {
		b.t.Fatal(err)
	}
	files, err := attempts[0].Run.EventFiles()
	if err != nil {
		b.t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range files {
		for _, e := range eventsOf(b.t, f) {
			if f.Writer == "rank" && f.Rank == 0 && e.Environment != nil {
				found = e.Environment.Versions
			}
		}
	}
	var words []string
	for _, name := range append(names, "python") {
		if found[name] == "" {
			b.t.Errorf("%s: rank 0 tells no version of %s: %v", study, name, found)
		}
		words = append(words, name+" "+found[name])
	}
	return strings.Join(words, ", ")
}

// interpreter is the Python of a family's environment, which is built if it is
// not there.
func interpreter(family string) (string, error) {
	if family == "" {
		return "/usr/bin/python3", nil
	}
	cmd := exec.Command("../../launcher/framework/locks/environment.sh", family)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, complaint.String())
	}
	return strings.TrimSpace(string(out)), nil
}
