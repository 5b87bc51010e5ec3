package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
)

// What an interpreter may be on a machine of somebody else's.
func TestPyTorch(t *testing.T) {
	one := 1
	for name, test := range map[string]struct{ script, want string }{
		"no PyTorch":      {`echo "ModuleNotFoundError: No module named 'torch'" >&2; exit 1`, "give an interpreter with PyTorch for CUDA (make gpu-check PYTHON=…)"},
		"without CUDA":    {`echo '{"version": "2.9.0+cpu", "available": false}'`, "PyTorch 2.9.0+cpu (INTERPRETER) sees no GPU, but the driver sees 1: install a PyTorch that is built for CUDA 12.4 or older"},
		"a banner":        {`echo welcome`, `printed "welcome\n"`},
		"what is needed":  {`echo '{"version": "2.9.0", "available": true}'`, ""},
		"no such program": {"", "INTERPRETER"},
	} {
		t.Run(name, func(t *testing.T) {
			python := filepath.Join(t.TempDir(), "python")
			if test.script != "" {
				if err := os.WriteFile(python, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			c := &checker{options: options{Python: python, Log: io.Discard}, facts: probe.NCCL{Devices: &one}}
			c.report.Driver = "12.4"
			var s step
			err := c.pytorch(t.Context(), &s)
			if test.want == "" {
				if err != nil || len(s.Found) != 1 {
					t.Errorf("%v, %q", err, s.Found)
				}
				return
			}
			if want := strings.ReplaceAll(test.want, "INTERPRETER", python); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// What else is on the GPUs is what nvidia-smi says, where there is one.
func TestOthers(t *testing.T) {
	for script, want := range map[string]string{
		"":       "",
		"exit 9": "",
		"echo '4711, python3, 812 MiB'; echo '4712, a`b, [N/A]'": "- `4711, python3, 812 MiB`|- `4712, a'b, [N/A]`",
		"echo": "",
	} {
		bin := t.TempDir()
		if script != "" {
			if err := os.WriteFile(filepath.Join(bin, "nvidia-smi"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("PATH", bin)
		c := &checker{environment: os.Environ()}
		if got := strings.Join(c.others(t.Context()), "|"); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// A check has its limit, those that need it are not made, the others are.
func TestLimit(t *testing.T) {
	c := &checker{options: options{Log: io.Discard}}
	hangs := part{"hangs", func(ctx context.Context, _ *step) error {
		_, err := c.start(ctx, nil, "sleep", "600")
		return err
	}, 10 * time.Millisecond, nil}
	s := c.attempt(t.Context(), hangs, nil)
	if s.result() != "FAILED" || !strings.Contains(s.Failed.Error(), "sleep 600: ended after 10ms, this check's limit") {
		t.Errorf("%s, %v", s.result(), s.Failed)
	}
	needs := part{"needs it", func(context.Context, *step) error { panic("made") }, time.Minute, []string{"hangs"}}
	if s := c.attempt(t.Context(), needs, map[string]bool{"hangs": false}); s.result() != "not made" || s.Missing != `"hangs" did not pass` {
		t.Errorf("%+v", s)
	}
	r := report{Steps: []step{s, {Name: "other", Found: []string{"12 apples"}}, {Name: "needs it", Missing: `"hangs" did not pass`}}}
	page := r.markdown()
	for _, want := range []string{"# GPU check: failed\n\n2 of 3 checks did not pass", "| hangs | FAILED | 0 s |", "| other | passed |", "## Hangs\n\n**Failed:**\n", "12 apples", `Not made: "hangs" did not pass.`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
	if err := r.failed(); err == nil || err.Error() != "1 check of 3 failed (hangs); the page says why" {
		t.Errorf("%v", err)
	}
}

// Of what go test -v prints, the page has how many tests passed and how far trainings
// are from the CPU engine's; of a failure, what the test said.
func TestTested(t *testing.T) {
	const out = `=== RUN   TestProducts
--- PASS: TestProducts (0.02s)
PASS
ok  	github.com/scalebench/scalebench/launcher/gpu/cublas	1.2s
=== RUN   TestAsOnCPUs
=== RUN   TestAsOnCPUs/cnn,_1_ranks
    engine_test.go:337: parameters that training moved by up to 0.02 differ by up to 2e-07, with running averages 3e-07
--- PASS: TestAsOnCPUs (0.50s)
    --- PASS: TestAsOnCPUs/cnn,_1_ranks (0.50s)
PASS
ok  	github.com/scalebench/scalebench/launcher/native/train/gpu	2.0s
=== RUN   TestDecode
    image_test.go:20: image 3: 0.5, want 0.25
--- FAIL: TestDecode (0.00s)
FAIL
FAIL	github.com/scalebench/scalebench/launcher/native/train/gpu/kernel	0.1s
FAIL
`
	found, failed := tested(out)
	if got, want := strings.Join(found, "\n"), `- `+"`launcher/gpu/cublas`"+`: 1 tests passed
- `+"`launcher/native/train/gpu`"+`: 2 tests passed
  - cnn, 1 ranks: parameters that training moved by up to 0.02 differ by up to 2e-07, with running averages 3e-07`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got, want := strings.Join(failed, "\n"), "--- FAIL: TestDecode (0.00s)\n    image_test.go:20: image 3: 0.5, want 0.25"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Each precision is held against PyTorch's faster layout in the same precision.
func TestAgainst(t *testing.T) {
	ways := []way{{"fp32", "nchw", "eager", 1000, 0, 0, ""}, {"fp32", "channels_last", "eager", 800, 0, 0, ""}, {"fp32", "nchw", "compiled", 0, 0, 0, "no compiler"},
		{"tf32", "nchw", "eager", 2000, 0, 0, ""}, {"tf32", "channels_last", "eager", 2500, 0, 0, ""}, {"tf32", "nchw", "compiled", 5000, 0, 0, ""}}
	lines := against(128, map[string]float64{"fp32": 1100, "tf32": 2000}, ways)
	if got, want := strings.Join(lines, "\n"), "- batch 128, fp32: 1.10 of eager, compiled does not run\n- batch 128, tf32: 0.80 of eager, 0.40 of compiled"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
