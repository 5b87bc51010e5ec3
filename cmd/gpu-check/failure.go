package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"

	"github.com/scalebench/scalebench/launcher/gpucheck"
	"github.com/scalebench/scalebench/slurm"
)

// A failure describes why a part failed, with everything that is needed to understand
// it on another machine.
type failure struct {
	gpucheck.Failure
	Versions  map[string]string `json:"versions"`
	DriverLog []string          `json:"driver_log"` // lines of the kernel's log
	Reproduce string            `json:"reproduce"`  // a shell command, in the bundle's folder
}

// checkError is the error of a part in which a kernel's result was wrong.
type checkError struct{ gpucheck.Failure }

func (e *checkError) Error() string { return strings.Join(e.Said, "; ") }

// diagnose describes why a part failed.
func (c *checker) diagnose(p part, err error) *failure {
	f := &failure{DriverLog: driverLog(), Reproduce: c.reproduce(p.name), Versions: map[string]string{
		"scalebench": c.report.Version, "commit": c.report.Commit, "gpu": c.report.GPUs, "cuda_driver": c.report.Driver, "driver_module": c.report.DriverModule,
		"nccl": c.report.NCCL, "nccl_file": c.facts.Path, "cublas": c.report.CuBLAS, "cublas_file": c.cublasFile, "pytorch": c.report.PyTorch, "linux": c.report.Kernel}}
	if of, ok := errors.AsType[*checkError](err); ok {
		f.Failure = of.Failure
	} else {
		f.Said = []string{err.Error()}
	}
	return f
}

// variables matches the environment variables that determine which libraries and
// devices are used.
var variables = regexp.MustCompile(`^(SCALEBENCH_\w+|CUDA_\w+|NCCL_\w+|CUBLAS_\w+|NVIDIA_\w+|VIRTUAL_ENV|LD_LIBRARY_PATH)=`)

// reproduce returns the shell command that runs only this part.
func (c *checker) reproduce(name string) string {
	var words []string
	for _, v := range c.environment {
		if key, value, _ := strings.Cut(v, "="); variables.MatchString(v) {
			words = append(words, key+"="+quoted(value))
		}
	}
	words = append(words, "./gpu-check", "--only", name, "--output", "repro.json")
	if c.options.Python != "" {
		words = append(words, "--python", quoted(c.options.Python))
	}
	if c.Double {
		words = append(words, "--double")
	}
	if c.Perturb {
		words = append(words, "--perturb")
	}
	return strings.Join(words, " ")
}

// quoted returns a string quoted as one word for a shell.
func quoted(s string) string {
	word, err := slurm.Quote(s)
	if err != nil { // only for a NUL byte, which no variable can contain
		return fmt.Sprintf("%q", s)
	}
	return word
}

// mostLog is the maximum number of lines of the Linux kernel's log in a failure.
const mostLog = 20

// driverLog returns the last lines that NVIDIA's driver wrote to the Linux kernel's
// log, or one line that says why the log cannot be read.
func driverLog() []string {
	const readAll = 3 // SYSLOG_ACTION_READ_ALL
	buffer := make([]byte, 1<<20)
	n, err := syscall.Klogctl(readAll, buffer)
	if err != nil {
		return []string{fmt.Sprintf("the kernel's log cannot be read here (%v); ask an administrator for: dmesg | grep -E 'NVRM|Xid'", err)}
	}
	list := driverLines(buffer[:n])
	if len(list) == 0 {
		return []string{"the kernel's log has no line of NVIDIA's driver"}
	}
	return list
}

func driverLines(log []byte) (list []string) {
	for line := range bytes.Lines(log) {
		if text := strings.TrimSpace(string(line)); strings.Contains(text, "NVRM") || strings.Contains(text, "Xid") || strings.Contains(text, "nvidia") {
			list = append(list, text)
		}
	}
	return list[max(0, len(list)-mostLog):]
}

// markdown returns the description of the failure for the page, gpu-check.md.
func (f *failure) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "```\n%s\n```\n", strings.Join(f.Said, "\n"))
	for _, d := range f.Differences {
		fmt.Fprintf(&b, "\n%s: %d of %d elements are wrong, shape %s, tolerance %s.\n", d.What, d.Wrong, d.Elements, d.Shape, d.Tolerance)
		if d.Launch != nil {
			fmt.Fprintf(&b, "Written by `%s`.\n", d.Launch)
		}
		b.WriteString("\n| element | value | expected |\n|---|---|---|\n")
		for _, v := range d.First {
			fmt.Fprintf(&b, "| %d | %s | %s |\n", v.Index, v.Got, v.Want)
		}
	}
	fmt.Fprintf(&b, "\nReproduce: `%s`\n\nDriver's log:\n\n```\n%s\n```\n", f.Reproduce, strings.Join(f.DriverLog, "\n"))
	return b.String()
}

// moduleVersion returns the version of NVIDIA's kernel module; "" if it is not
// loaded.
func moduleVersion() string {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	m := regexp.MustCompile(`\s(\d+\.\d+(\.\d+)?)\s`).FindSubmatch(text)
	if m == nil {
		line, _, _ := strings.Cut(string(text), "\n")
		return line
	}
	return string(m[1])
}

// linux returns the release of the running Linux kernel.
func linux() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
