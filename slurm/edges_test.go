package slurm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// Texts that Slurm prints, with values at the limits of what we accept.
func TestTextsOfSlurm(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"1-02:03:04": day + 2*time.Hour + 3*time.Minute + 4*time.Second, "2-00:00:00": 2 * day, "02:03:04": 2*time.Hour + 3*time.Minute + 4*time.Second,
		"05:06": 5*time.Minute + 6*time.Second, "3-05:06": 3*day + 5*time.Minute + 6*time.Second, "00:00": 0,
	} {
		d := &describing{values: map[string]string{"MaxTime": text}}
		if got := d.span("MaxTime"); got == nil || *got != want {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	for text, want := range map[string]ExitCode{"0:0": {}, "3:0": {3, 0}, "0:9": {0, 9}, "3:11": {3, 11}} {
		got, err := parseExit(text)
		if err != nil || got == nil || *got != want || got.Success() != (text == "0:0") {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"3", ":", "-1:0", "0:-1", "-1:-1", "a:0", "0:a", "1:2:3"} {
		if got, err := parseExit(text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
	for text, want := range map[string]int64{"1": 1, "1700000000": 1700000000, "1099511627776": 1 << 40} {
		if got, err := parseTime(text); err != nil || got.Unix() != want {
			t.Errorf("%s: %v, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "N/A", "NONE", "None", "Unknown", "(null)"} {
		if got, err := parseTime(text); err != nil || !got.IsZero() {
			t.Errorf("%q: %v, %v; want none", text, got, err)
		}
	}
	for _, text := range []string{"-1", "1099511627777", "2026-01-01T00:00:00"} {
		if got, err := parseTime(text); err == nil || !strings.Contains(err.Error(), "is not in seconds since 1970") {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]float64{"": 0, "0": 0, "12.5": 12.5, "9223372036854774784": 9223372036854774784, "9223372036854775808": 0, "18446744073709551614": 0} {
		if got, err := parseJoules(text); err != nil || got != want {
			t.Errorf("%s J: %g, %v; want %g", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "NaN", "12J"} {
		if got, err := parseJoules(text); err == nil {
			t.Errorf("%s J: %g", text, got)
		}
	}
	settings := parseConfig([]byte("Configuration data as of 2026\n = x\nA = \nB = 1\nB = 2\n C=3 \nD = (null)\nE = a = b\n"))
	if got := fmt.Sprint(settings); got != "map[B:1 C:3 E:a = b]" {
		t.Errorf("settings %s", got)
	}
	accounts, err := ParseAccounts([]byte("a|\n\nb|gpu\na|\n"), []byte(" b \n"))
	if got := fmt.Sprint(accounts); err != nil || got != "[{a  false} {b gpu true}]" {
		t.Errorf("accounts %s, %v", got, err)
	}
	for _, text := range []string{"a\n", "|gpu\n", "a|b|c\n"} {
		if got, err := ParseAccounts([]byte("x|\n"+text), nil); err == nil || !strings.Contains(err.Error(), "sacctmgr, line 2: ") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Values from a record that are passed to Slurm's commands.
func TestRecordedNames(t *testing.T) {
	for _, c := range []struct {
		name         string
		check        func(string) error
		valid, wrong []string
	}{
		{"job", CheckJobName, []string{"a", "a.b_c@d:e+f/g-1", strings.Repeat("a", 200)}, []string{"", "a b", "a,b", strings.Repeat("a", 201)}},
		{"id", CheckJobID, []string{"95", "95_3", "95+1", strings.Repeat("9", 18)}, []string{"", "-95", "95,96", "95_", "a", strings.Repeat("9", 19)}},
		{"cluster", CheckCluster, []string{"c", "_c.d-e", strings.Repeat("c", 100)}, []string{"", "-c", "a,b", "a b", strings.Repeat("c", 101)}},
		{"node", CheckNode, []string{"n1", "n1.site", strings.Repeat("n", 253)}, []string{"", "-n", "n1,n2", "n[1-2]", strings.Repeat("n", 254)}},
	} {
		for _, name := range c.valid {
			if err := c.check(name); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
		for _, name := range c.wrong {
			if c.check(name) == nil {
				t.Errorf("%s: %q is valid", c.name, name)
			}
		}
	}
	for _, c := range []struct {
		f    Filter
		want bool
	}{
		{Filter{}, true}, {Filter{IDs: []string{"95"}}, true}, {Filter{Names: []string{"a"}}, true}, {Filter{User: "u"}, true},
		{Filter{IDs: []string{"95"}, Names: []string{"a"}}, false}, {Filter{IDs: []string{"95,96"}}, false}, {Filter{Names: []string{"a b"}}, false}, {Filter{User: "u\tv"}, false},
	} {
		if err := c.f.validate(); (err == nil) != c.want {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
	for message, want := range map[string]bool{
		"scancel: error: Kill job error on job id 95: Invalid job id specified": true, "Job/step already completing or completed": true,
		"Invalid job id specified\nJob/step already completing or completed": true, "Invalid job id specified\nAccess denied": false, "": false,
	} {
		if got := endedAlready(message); got != want {
			t.Errorf("%q: the jobs have ended: %v", message, got)
		}
	}
}

// Indices of job arrays, at the limits.
func TestIndicesOfArrays(t *testing.T) {
	for text, want := range map[string][]int{
		"0": {0}, "0,4-6": {0, 4, 5, 6}, "12-20:4": {12, 16, 20}, "12-19:4": {12, 16}, "3-3": {3}, "0-8:8": {0, 8},
	} {
		if got, ok := expandIndices(text); !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "a", "1-", "-1", "6-4", "1-4:0", "1-4:a", "1,,2", "0-131072", "0-131071,0", "1-4:-1"} {
		if got, ok := expandIndices(text); ok {
			t.Errorf("%s: %d indices", text, len(got))
		}
	}
	for text, most := range map[string]int{"0-131071": 131072, "5-131076": 131072, "0-262143:2": 131072, "0-131070,7": 131072} {
		if got, ok := expandIndices(text); !ok || len(got) != most {
			t.Errorf("%s: %d indices, %v; want %d", text, len(got), ok, most)
		}
	}
	for id, want := range map[string]int{"95_3": 3, "95_0": 0, "95_10": 10} {
		if array, i, ok := ArrayTask(id); !ok || array != "95" || i != want {
			t.Errorf("%s: %s, %d, %v", id, array, i, ok)
		}
	}
	for _, id := range []string{"95", "95_", "95_-1", "95_03", "95_a", "95_+3"} {
		if array, i, ok := ArrayTask(id); ok || array != "" || i != 0 {
			t.Errorf("%s: %s, %d, %v", id, array, i, ok)
		}
	}
	for p, want := range map[Pack]string{{Runs: 6}: "0-5", {Runs: 6, Limit: 1}: "0-5%1", {Runs: 1}: "0-0"} {
		if got := p.indices(); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
	}
	for size, want := range map[string]int{"2": 2, "1001": 1001, "4000001": 4000001} {
		if n, err := parseMaxArraySize([]byte("X = 1\nMaxArraySize            = " + size + "\n")); err != nil || n != want {
			t.Errorf("%s: %d, %v", size, n, err)
		}
	}
	for size, want := range map[string]string{"0": "allows no job arrays", "1": "allows no job arrays", "4000002": "MaxArraySize is 4000002, which is not a valid size", "99999999999999999999": "not a valid size", "x": "does not report MaxArraySize"} {
		if n, err := parseMaxArraySize([]byte("MaxArraySize = " + size + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d, %v; want %q", size, n, err, want)
		}
	}
}

// Each field of a script at its limits.
func TestScriptAtItsEdges(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name   string
		change func(s *Script)
		want   string // of a problem; "" for none
	}{
		{"as it is", func(*Script) {}, ""},
		{"no node", func(s *Script) { s.Nodes = 0 }, "Nodes is 0; it must be at least 1"},
		{"no task", func(s *Script) { s.TasksPerNode = 0 }, "TasksPerNode is 0; it must be at least 1"},
		{"no CPU", func(s *Script) { s.CPUsPerTask = 0 }, "CPUsPerTask is 0; it must be at least 1"},
		{"fewer GPUs than none", func(s *Script) { s.GPUsPerNode = -1 }, "GPUsPerNode is -1; it must be at least 0"},
		{"less memory than none", func(s *Script) { s.MemoryPerNodeMB = -1 }, "MemoryPerNodeMB is -1"},
		{"most memory", func(s *Script) { s.MemoryPerNodeMB = 1 << 30 }, ""},
		{"more", func(s *Script) { s.MemoryPerNodeMB = 1<<30 + 1 }, "MemoryPerNodeMB is 1073741825"},
		{"no time", func(s *Script) { s.Time = 0 }, "Time is 0s; a job needs a limit above zero"},
		{"a nanosecond", func(s *Script) { s.Time = 1 }, ""},
		{"ten years", func(s *Script) { s.Time = 10 * year }, ""},
		{"more", func(s *Script) { s.Time = 10*year + 1 }, "that is longer than ten years"},
		{"a late signal", func(s *Script) { s.SignalBefore = 65535 * time.Second }, ""},
		{"later", func(s *Script) { s.SignalBefore = 65536 * time.Second }, "Slurm takes 0 to 65535 seconds"},
		{"earlier than the end", func(s *Script) { s.SignalBefore = -time.Second }, "Slurm takes 0 to 65535 seconds"},
		{"a type without GPUs", func(s *Script) { s.GPUType = "a100" }, `GPUType is "a100", but GPUsPerNode is 0`},
		{"a type", func(s *Script) { s.GPUType, s.GPUsPerNode = "a100", 1 }, ""},
		{"a type of two words", func(s *Script) { s.GPUType, s.GPUsPerNode = "a 100", 1 }, "it may hold letters, digits"},
		{"a line break", func(s *Script) { s.Partition = "a\nb" }, `Partition is "a\nb"; control characters cannot be in it`},
		{"a relative folder", func(s *Script) { s.RunDir = "run" }, `RunDir is "run"; it must be an absolute path`},
		{"a relative working folder", func(s *Script) { s.Workdir = "run" }, `Workdir is "run"; it must be an absolute path`},
		{"no worker", func(s *Script) { s.Worker = "" }, `Worker is ""; it must be an absolute path`},
		{"no command", func(s *Script) { s.Command = nil }, "Command is []; it must start with the program to run"},
		{"an empty command", func(s *Script) { s.Command = []string{""} }, `Command is [""]; it must start`},
		{"an option as the command", func(s *Script) { s.Command = []string{"-x"} }, `Command is ["-x"]; it must start`},
		{"a NUL in the setup", func(s *Script) { s.Setup = []string{"a", "b\x00"} }, "Setup line 2 is"},
		{"a pack", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "/p", Runs: 1} }, ""},
		{"the largest pack", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "/p", Runs: maxArrayTasks} }, ""},
		{"a larger one", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "/p", Runs: maxArrayTasks + 1} }, "it needs at least one run"},
		{"a pack of no run", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "/p"} }, "Pack of 0 runs, 0 at once; it needs at least one run"},
		{"a negative limit", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "/p", Runs: 1, Limit: -1} }, "Pack of 1 runs, -1 at once"},
		{"a pack and a run", func(s *Script) { s.Pack = &Pack{Dir: "/p", Runs: 1} }, "Pack serves the runs of its list; RunDir \"/run\" or Inside contradict it"},
		{"a pack inside an allocation", func(s *Script) { s.RunDir, s.Inside, s.Pack = "", true, &Pack{Dir: "/p", Runs: 1} }, "or Inside contradict it"},
		{"a pack in a relative folder", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "p", Runs: 1} }, `Pack.Dir is "p"; it must be an absolute path`},
		{"a pack in two lines", func(s *Script) { s.RunDir, s.Pack = "", &Pack{Dir: "/p\nq", Runs: 1} }, "it must be an absolute path without control characters"},
	} {
		s := Script{JobName: "j", RunDir: "/run", Worker: "/worker", Output: "/out", Nodes: 1, TasksPerNode: 1, CPUsPerTask: 1, Time: time.Hour, Command: []string{"true"}}
		c.change(&s)
		if err := s.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
