//go:build slurm

package slurm_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/slurm/notation"
)

var (
	possibilities = regexp.MustCompile(`option '--\S+' is ambiguous; possibilities: (.*)`)
	quotedOption  = regexp.MustCompile(`'--([a-z0-9-]+)'`)
	wantsValue    = regexp.MustCompile(`option '--([a-z0-9-]+)' requires an argument`)
)

// sbatchSays returns what sbatch prints for an option without a script.
func sbatchSays(t *testing.T, arguments ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(cluster.Dir, "bin", "sbatch"), arguments...)
	cmd.Env = cluster.Env()
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out)
}

// Every option that sbatch accepts and a script decides is refused.
func TestOwnedOptionsAsSbatchReadsThem(t *testing.T) {
	var options []string // all options of this sbatch, from its output
	for letter := 'a'; letter <= 'z'; letter++ {
		said := sbatchSays(t, "--"+string(letter))
		if m := possibilities.FindStringSubmatch(said); m != nil {
			for _, m := range quotedOption.FindAllStringSubmatch(m[1], -1) {
				options = append(options, m[1])
			}
		} else if m := wantsValue.FindStringSubmatch(said); m != nil {
			options = append(options, m[1])
		}
	}
	if len(options) < 90 {
		t.Fatalf("sbatch named %d options only: %q", len(options), options)
	}
	var accepted []string
	for _, name := range options {
		var owned *notation.OwnedError
		err := notation.CheckOption(name, "1")
		if !errors.As(err, &owned) {
			// The table must contain all of sbatch's names, or abbreviations could not be recognized.
			if short := name[:len(name)-1]; !slices.Contains(options, short) && notation.CheckOption(short, "1") == nil {
				t.Errorf("sbatch has %s, which the table lacks", name)
			}
			continue
		}
		for n := 1; n <= len(name); n++ {
			short := name[:n]
			if n < len(name) && slices.Contains(options, short) {
				continue // another option's name
			}
			said := sbatchSays(t, "--"+short)
			if strings.Contains(said, "is ambiguous") || strings.Contains(said, "unrecognized option") {
				continue
			}
			accepted = append(accepted, short)
			if notation.CheckOption(short, "") == nil || notation.CheckOption(short, "1") == nil {
				t.Errorf("sbatch takes --%s for --%s; it is not refused", short, name)
			}
		}
	}
	for _, short := range []string{"job-nam", "test-onl", "job-name"} {
		if !slices.Contains(accepted, short) {
			t.Errorf("sbatch does not take --%s", short)
		}
	}
	t.Logf("%d ways to write the options that a script decides", len(accepted))
}
