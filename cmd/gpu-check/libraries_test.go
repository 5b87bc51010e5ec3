package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/trust"
)

// An interpreter may be any program. One that --python names must have PyTorch for
// CUDA; if the one found by searching lacks it, parts are left out.
func TestPyTorch(t *testing.T) {
	one := 1
	for name, test := range map[string]struct{ script, want string }{
		"no PyTorch":      {`echo "ModuleNotFoundError: No module named 'torch'" >&2; exit 1`, "No module named 'torch'"},
		"without CUDA":    {`echo '{"version": "2.9.0+cpu", "available": false}'`, "PyTorch 2.9.0+cpu (INTERPRETER) sees no GPU, but the driver sees 1: install a PyTorch that is built for CUDA 12.4 or older"},
		"a banner":        {`echo welcome`, `printed "welcome\n"`},
		"what is needed":  {`echo '{"version": "2.9.0", "available": true}'`, ""},
		"no such program": {"", "INTERPRETER"},
	} {
		t.Run(name, func(t *testing.T) {
			interpreter := filepath.Join(t.TempDir(), "python")
			if test.script != "" {
				if err := os.WriteFile(interpreter, []byte("#!/bin/sh\n"+test.script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, named := range []bool{true, false} {
				c := &checker{options: options{Log: io.Discard}, report: &report{}, facts: probe.NCCL{Devices: &one}, python: interpreter}
				if named {
					c.options.Python = interpreter
				}
				c.report.Driver = "12.4"
				var o outcome
				err := c.pytorch(t.Context(), &o)
				said := o.Why
				if named && err != nil {
					said = err.Error()
				}
				if test.want == "" {
					if err != nil || said != "" || len(o.Found) != 1 {
						t.Errorf("%v, %q, %q", err, said, o.Found)
					}
				} else if want := strings.ReplaceAll(test.want, "INTERPRETER", interpreter); !strings.Contains(said, want) || (err == nil) == named {
					t.Errorf("named: %v: %q, error %v; want %q", named, said, err, want)
				}
			}
		})
	}
}

// The interpreter finds wheels of CUDA 11, 12 and 13. If several are installed, it
// takes the CUDA that PyTorch was built for.
func TestLibrariesOfWheels(t *testing.T) {
	const nccl = "nvidia/nccl/lib/libnccl.so.2"
	for name, test := range map[string]struct {
		files               string
		torch, nccl, cublas string
	}{
		"CUDA 12":       {nccl + " nvidia/cublas/lib/libcublas.so.12 nvidia/cublas/lib/libcublasLt.so.12", "12.8", nccl, "nvidia/cublas/lib/libcublas.so.12"},
		"CUDA 11":       {nccl + " nvidia/cublas/lib/libcublas.so.11", "11.8", nccl, "nvidia/cublas/lib/libcublas.so.11"},
		"CUDA 13":       {nccl + " nvidia/cu13/lib/libcublas.so.13", "13.0", nccl, "nvidia/cu13/lib/libcublas.so.13"},
		"12 next to 13": {nccl + " nvidia/cu13/lib/libcublas.so.13 nvidia/cublas/lib/libcublas.so.12", "13.0", nccl, "nvidia/cu13/lib/libcublas.so.13"},
		"13 next to 12": {nccl + " nvidia/cu13/lib/libcublas.so.13 nvidia/cublas/lib/libcublas.so.12", "12.8", nccl, "nvidia/cublas/lib/libcublas.so.12"},
		"no PyTorch":    {nccl + " nvidia/cublas/lib/libcublas.so.12", "", nccl, "nvidia/cublas/lib/libcublas.so.12"},
		"before 2.0":    {"torch/lib/libcublas.so.11", "11.7", "", "torch/lib/libcublas.so.11"},
		"a CPU build":   {"", "None", "", ""},
		"nothing":       {"", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			site := t.TempDir()
			files := strings.Fields(test.files)
			if test.torch != "" {
				files = append(files, "torch/__init__.py", "torch/version.py")
			}
			for _, file := range files {
				path := filepath.Join(site, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				text := ""
				if file == "torch/version.py" {
					text = "from typing import Optional\n__version__ = '2.0.1'\ncuda: Optional[str] = '" + test.torch + "'\nhip = '9.9'\n"
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PYTHONPATH", site)
			t.Setenv("PYTHONNOUSERSITE", "1")
			out, err := trust.AskPython(t.Context(), bare(t), trust.PythonQuestion{Program: librariesProgram, Imports: true})
			if err != nil {
				t.Fatal(err)
			}
			var found wheels
			if err := json.Unmarshal(out, &found); err != nil {
				t.Fatal(err)
			}
			in := func(file string) string {
				if file == "" {
					return ""
				}
				return filepath.Join(site, file)
			}
			if want := (wheels{in(test.nccl), in(test.cublas), test.torch != ""}); found != want {
				t.Errorf("%+v, want %+v", found, want)
			}
		})
	}
}

// bare returns an interpreter without the packages of this machine.
func bare(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec /usr/bin/python3 -S \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// Other processes on the GPUs are listed by nvidia-smi, if it exists.
func TestOccupants(t *testing.T) {
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
		if got := strings.Join(c.occupants(t.Context()), "|"); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}
