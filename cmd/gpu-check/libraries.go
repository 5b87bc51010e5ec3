package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/scalebench/scalebench/launcher/cluster/probe"
	"github.com/scalebench/scalebench/launcher/trust"
)

//go:embed libraries.py
var librariesProgram string

// wheels holds what libraries.py finds in the packages of a Python interpreter.
type wheels struct {
	NCCL, CuBLAS string // paths of the libraries; "": not found
	PyTorch      bool
}

// interpreter returns the Python interpreter to use: the one that --python names, else the
// active virtual environment's, else the first in PATH.
func (o options) interpreter() string {
	if o.Python != "" {
		return o.Python
	}
	if environment := os.Getenv("VIRTUAL_ENV"); environment != "" {
		if path := filepath.Join(environment, "bin", "python3"); exists(path) {
			return path
		}
	}
	return trust.DefaultPython
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// look finds NCCL and cuBLAS. It asks the Python interpreter where they are in its
// packages, and then asks the worker which libraries it loads, as doctor does. A
// library that an environment variable names takes precedence. If Python's packages
// lack a library, the worker searches the system for it.
func (c *checker) look(ctx context.Context) error {
	c.python = c.interpreter()
	var found wheels
	text, err := trust.AskPython(ctx, c.python, trust.PythonQuestion{Program: librariesProgram, Imports: true})
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		found = wheels{} // the part libraries/pytorch reports what is wrong with the interpreter
	}
	for variable, file := range map[string]string{"SCALEBENCH_NCCL": found.NCCL, "SCALEBENCH_CUBLAS": found.CuBLAS} {
		if file != "" && os.Getenv(variable) == "" {
			c.environment = append(c.environment, variable+"="+file)
		}
	}
	text, err = c.start(ctx, nil, c.Worker, "probe")
	if err != nil {
		return err
	}
	var facts probe.Facts
	if err := json.Unmarshal(text, &facts); err != nil {
		return fmt.Errorf("%s printed %.100q: %w", c.Worker, text, err)
	}
	if facts.NCCL == nil {
		return fmt.Errorf("%s is not the GPU variant; use the bundle of make gpu-bundle", c.Worker)
	}
	c.facts = *facts.NCCL
	return nil
}

// gpu is the first part. It fails without a GPU, since nothing can then be
// checked.
func (c *checker) gpu(ctx context.Context, o *outcome) error {
	if err := c.look(ctx); err != nil {
		return err
	}
	switch n := c.facts; {
	case n.DriverError != "":
		return fmt.Errorf("no usable GPU: %s (run this on a node with a GPU and NVIDIA's driver); other libraries: %s", n.DriverError, c.others())
	case n.Devices == nil || *n.Devices < 1:
		return fmt.Errorf("no usable GPU: the driver sees none; check CUDA_VISIBLE_DEVICES and the job's request; other libraries: %s", c.others())
	case isFake(n.GPU) && !c.Double:
		return usageError(fmt.Sprintf("the GPU is the test fake, %s; unset SCALEBENCH_CUDA, SCALEBENCH_CUBLAS and SCALEBENCH_NCCL, or give --double", n.GPU))
	case c.Double && !isFake(n.GPU):
		return usageError(fmt.Sprintf("--double: %s is not the test fake; set SCALEBENCH_CUDA, SCALEBENCH_CUBLAS and SCALEBENCH_NCCL to it", n.GPU))
	}
	gpus := fmt.Sprintf("%d × %s", *c.facts.Devices, c.facts.GPU)
	if before := c.report.GPUs; before != "" && before != gpus {
		return usageError(fmt.Sprintf("--resume: the results so far are of %s, and this node has %s; resume on a node of the same kind, or begin again without --resume", before, gpus))
	}
	c.report.Driver, c.report.GPUs = c.facts.Driver, gpus
	c.ranks = 2
	if *c.facts.Devices >= 4 {
		c.ranks = 4
	}
	o.Found = []string{fmt.Sprintf("%s; the driver supports CUDA %s", gpus, c.facts.Driver)}
	if list := c.occupants(ctx); len(list) > 0 && !c.Double {
		o.Found = append(o.Found, "", "Before the check began, nvidia-smi showed processes on this machine's GPUs; if one is on a GPU of this check, the speeds are not performance:", "")
		o.Found = append(o.Found, list...)
	}
	return nil
}

// others returns a short text that says whether NCCL and cuBLAS were found.
func (c *checker) others() string {
	nccl, cublas := "NCCL not found", "cuBLAS not found"
	if c.facts.Error == "" {
		nccl = c.facts.Name + ", " + c.facts.Path
	}
	if c.facts.CuBLASError == "" {
		cublas = c.facts.CuBLAS
	}
	return nccl + "; " + cublas
}

// occupants returns the processes that use this machine's GPUs, as nvidia-smi lists
// them. nvidia-smi comes with the driver.
func (c *checker) occupants(ctx context.Context) (list []string) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := c.start(ctx, nil, "nvidia-smi", "--query-compute-apps=pid,process_name,used_memory", "--format=csv,noheader")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "No ") {
			list = append(list, "- `"+strings.ReplaceAll(line, "`", "'")+"`")
		}
	}
	return list
}

// isFake reports whether a GPU's name says that it is a test fake.
func isFake(name string) bool { return strings.HasPrefix(name, "DOUBLE") }

// pytorch checks which PyTorch the interpreter has. The check can do without PyTorch,
// but if the user named an interpreter, its PyTorch must work.
func (c *checker) pytorch(ctx context.Context, o *outcome) error {
	text, err := trust.AskPython(ctx, c.python, trust.PythonQuestion{Imports: true, Limit: 10 * time.Minute, Program: `import json, torch
print(json.dumps({"version": torch.__version__, "available": torch.cuda.is_available()}))`})
	var found struct {
		Version   string
		Available bool
	}
	if err == nil {
		if err = json.Unmarshal(text, &found); err != nil {
			err = fmt.Errorf("%s printed %.100q: %w", c.python, text, err)
		}
	}
	if err == nil && !found.Available && !c.Double {
		err = fmt.Errorf("PyTorch %s (%s) sees no GPU, but the driver sees %d: install a PyTorch that is built for CUDA %s or older", found.Version, c.python, *c.facts.Devices, c.report.Driver)
	}
	switch {
	case err != nil && (c.options.Python != "" || ctx.Err() != nil):
		return fmt.Errorf("give an interpreter with PyTorch for CUDA (--python): %w", err)
	case err != nil:
		lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
		o.Why = fmt.Sprintf("%s has no PyTorch for CUDA (%s); name one with --python", c.python, lines[len(lines)-1])
		return nil
	}
	c.report.PyTorch = found.Version
	o.Found = []string{fmt.Sprintf("PyTorch %s, `%s`", found.Version, c.python)}
	return nil
}

// library checks the NCCL that look found.
func (c *checker) library(_ context.Context, o *outcome) error {
	switch n := c.facts; {
	case n.Error != "":
		return errors.New(n.Error)
	case n.Double != c.Double:
		return usageError(fmt.Sprintf("%s is %s; give --double for the test fakes of all libraries, and only for them (SCALEBENCH_NCCL)", n.Path, n.Name))
	}
	c.report.NCCL = strings.TrimPrefix(c.facts.Name, "NCCL ")
	o.Found = []string{fmt.Sprintf("%s, `%s`", c.facts.Name, c.facts.Path)}
	return nil
}

// cublas checks the cuBLAS that look found.
func (c *checker) cublas(_ context.Context, o *outcome) error {
	n := c.facts
	if n.CuBLASError != "" {
		return errors.New(n.CuBLASError)
	}
	name, path, ok := cutLast(n.CuBLAS, ", ")
	switch {
	case !ok:
		return fmt.Errorf("%s probe says %q of cuBLAS; want its name and path", c.Worker, n.CuBLAS)
	case isFake(n.CuBLAS) != c.Double:
		return usageError(fmt.Sprintf("%s is %s; give --double for the test fakes of all libraries, and only for them (SCALEBENCH_CUBLAS)", path, name))
	}
	c.report.CuBLAS, c.cublasFile = strings.TrimPrefix(name, "cuBLAS "), path
	o.Found = []string{fmt.Sprintf("%s, `%s`", name, path)}
	return nil
}

func cutLast(s, separator string) (before, after string, ok bool) {
	at := strings.LastIndex(s, separator)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(separator):], true
}
