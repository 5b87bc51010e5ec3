package notation

import (
	"errors"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct{ name, value, want string }{
		{"constraint", "a100", ""},
		{"contiguous", "", ""},
		{"exclude", "n[1-3]", ""},
		{"nice", "", ""}, {"nice", "100", ""},
		{"tmpdir-size", "10G", ""}, // of a plugin: unknown to every version
		{"job-name", "x", "is decided by JobName"},
		{"job-nam", "x", "means job-name, which is decided by JobName"},
		{"j", "x", "means job-name, which is decided by JobName"},
		{"test-onl", "", "means test-only, which is decided by Submit"},
		{"mem-per", "1G", "is short for mem-per-cpu or mem-per-gpu; write the option in full"},
		{"exclud", "n1", "is short for exclude; write the option in full"},
		{"help", "", "is decided by Submit"},
		{"clusters", "other", "is decided by Cluster"},
		{"tasks-per-node", "9", "is decided by TasksPerNode"},
		{"constraint", "", "needs a value"},
		{"contiguous", "yes", "the option takes no value"},
		{"comment", "a\n#SBATCH --job-name=x", "control characters"},
		{"comment", "a\u2028", ""},
		{"J", "x", "is not a long sbatch option"}, {"Job-Name", "x", "is not a long sbatch option"}, {"-J", "x", "is not a long sbatch option"},
		{"job_name", "x", "is not a long sbatch option"}, {"comment=x --job-name", "x", "is not a long sbatch option"}, {"", "", "is not a long sbatch option"},
	} {
		err := CheckOption(tt.name, tt.value)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s = %q: %v; want %q", tt.name, tt.value, err, tt.want)
		}
	}
}

// No abbreviation of an option that scalebench decides is accepted, unless it is another option's full name.
func TestNoAbbreviationOfAnOwnedOption(t *testing.T) {
	exact := map[string]Option{}
	for _, o := range table {
		exact[o.Name] = o
	}
	if len(exact) != len(table) || len(table) < 100 {
		t.Fatalf("%d names in a table of %d", len(exact), len(table))
	}
	for _, o := range table {
		if o.Field == "" {
			continue
		}
		for n := 1; n <= len(o.Name); n++ {
			name := o.Name[:n]
			if other, ok := exact[name]; ok && other.Field == "" {
				continue
			}
			for _, value := range []string{"", "1"} {
				if CheckOption(name, value) == nil {
					t.Errorf("%s = %q passes for %s", name, value, o.Name)
				}
			}
		}
	}
}

func TestCheckScript(t *testing.T) {
	const ours = "#SBATCH --job-name=ours"
	for _, tt := range []struct {
		lines string
		line  int
		want  string
	}{
		{"#SBATCH --wckey=physics", 0, ""},
		{"#SBATCH -C a100 --comment=\"a b\" # --job-name=x", 0, ""},
		{"#SBATCH -C\n#SBATCH a100", 0, ""},
		{"# --job-name=x\n\n#!SBATCH -J x", 0, ""},
		{"#SBATCH --comment=--job-name=x", 0, ""},
		{"#SBATCH --comment --job-name=x", 0, ""}, // sbatch takes this as the option's value
		{"true\n#SBATCH --job-name=x", 0, ""},     // sbatch has stopped reading
		{"#SBATCH --job-name=x", 3, "--job-name is decided by JobName"},
		{"\n#SBATCH --job-nam x", 4, "--job-nam means job-name"},
		{"#SBATCH -J x", 3, "-J means job-name"},
		{"#SBATCH -Jx", 3, "-Jx means job-name"},
		{"#SBATCH -HW", 3, "-HW means wait"},
		{"#SBATCH-Jx", 3, "-Jx means job-name"},
		{"#SBATCH --\"job\"-name=x", 3, "--job-name is decided"},
		{"#SBATCH \\--jo\\b-name=x", 3, "--job-name is decided"},
		{"#SBATCH --wckey=a\t--tim=1", 3, "--tim is short for time or time-min"},
		{"#SBATCH --comment", 3, "--comment needs a value"},
		{"#SBATCH hetjob", 3, "heterogeneous"},
		{"#SLURM -J x", 3, "#SBATCH line"},
		{"#PBS -N x", 3, "#SBATCH line"},
		{"#SBATCH --comment=\"a", 3, "quote"},
		{"#SBATCH x --job-name=x", 3, "x is not an option"},
		{"#SBATCH -$ x", 3, "does not know"},
		{"#SBATCH --comment=\"\" -Jx", 3, "-Jx means job-name"},
		{"#SBATCH '' --comment=x", 3, "is not an option"},
		{"#SBATCH --comment='a\"b' -Jx", 3, "-Jx means job-name"},
		{"#SBATCH --comment=a\\", 0, ""}, // a backslash at the end quotes nothing
		{"#SBATCH \\  --comment=x", 3, "is not an option"},
		{"#SBATCH -C a100 -Jx", 3, "-Jx means job-name"},
		{"#SBATCH -HC a100", 0, ""},
		{"#SBATCH -Ca100 -Jx", 3, "-Jx means job-name"},
		{"#SBATCH -H -Jx", 3, "-Jx means job-name"},
		{"#SBATCH --hold -Jx", 3, "-Jx means job-name"},
		{"#SBATCH -k -Jx", 3, "-Jx means job-name"}, // the value of an optional one is in the same word
		{"#SBATCH -", 3, "is not an option"},
	} {
		// The line after it belongs to scalebench, so that a value cannot be taken from it.
		line, err := CheckScript("#!/bin/bash\n"+ours+"\n"+tt.lines+"\n"+ours+"\ntrue\n", []string{ours})
		if line != tt.line || tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: line %d, %v; want %d, %q", tt.lines, line, err, tt.line, tt.want)
		}
	}
	var owned *OwnedError
	if _, err := CheckScript("#SBATCH -p x\n", nil); !errors.As(err, &owned) || owned.Option.Name != "partition" {
		t.Errorf("%v is not the error of an owned option", err)
	}
}

// An option's letter is a letter, and no two options have the same.
func TestLetters(t *testing.T) {
	seen := map[byte]string{}
	for _, o := range Options() {
		if o.Short == 0 {
			continue
		}
		letter := 'A' <= o.Short && o.Short <= 'Z' || 'a' <= o.Short && o.Short <= 'z'
		if !letter || seen[o.Short] != "" {
			t.Errorf("%s has the letter %q; another option with it: %q", o.Name, o.Short, seen[o.Short])
		}
		seen[o.Short] = o.Name
	}
}
