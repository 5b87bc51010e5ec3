package probe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/scalebench/scalebench/launcher/trust"
	"github.com/scalebench/scalebench/launcher/world"
)

// cpuWord is the number of bytes in a word of a CPU set.
const cpuWord = unsafe.Sizeof(unix.CPUSet{}[0])

// GPUs describes the GPUs that a process sees.
type GPUs struct {
	Visible *string  `json:"visible"` // CUDA_VISIBLE_DEVICES; nil if it is not set
	List    []string `json:"list"`    // the lines of nvidia-smi -L
	Error   string   `json:"error,omitempty"`
}

func lookForGPUs(ctx context.Context) GPUs {
	var g GPUs
	if v, ok := os.LookupEnv("CUDA_VISIBLE_DEVICES"); ok {
		g.Visible = &v
	}
	if _, err := exec.LookPath("nvidia-smi"); errors.Is(err, exec.ErrNotFound) {
		g.Error = "no nvidia-smi in $PATH"
		return g
	}
	out, err := output(ctx, 30*time.Second, "nvidia-smi", "-L")
	if err != nil {
		g.Error = err.Error()
		return g
	}
	for line := range strings.SplitSeq(out, "\n") {
		if strings.HasPrefix(line, "GPU ") {
			g.List = append(g.List, line)
		}
	}
	return g
}

// NCCL describes the library that a worker of the GPU variant loaded.
type NCCL struct {
	Name   string `json:"name"` // library and version; the fake's name says "double"
	Path   string `json:"path"`
	Double bool   `json:"double,omitempty"`
	Error  string `json:"error,omitempty"`

	// The CUDA driver, which provides the device memory.
	Driver      string `json:"driver"` // the CUDA version that it supports, "12.4"
	Devices     *int   `json:"devices"`
	GPU         string `json:"gpu,omitempty"` // model of the first GPU
	DriverError string `json:"driver_error,omitempty"`

	// The matrix library of the native trainer.
	CuBLAS      string `json:"cublas,omitempty"` // version and path; the fake's says "double"
	CuBLASError string `json:"cublas_error,omitempty"`
}

// A Link is the network interface that the collectives would use.
type Link struct {
	Name      string `json:"name"`
	Address   string `json:"address"`
	BitPerSec *int64 `json:"bit_per_s"` // nil if the kernel does not know the speed
	Error     string `json:"error,omitempty"`
}

func link(name string) Link {
	ip, err := world.RoutableAddress(name)
	if err != nil {
		return Link{Name: name, Error: err.Error()}
	}
	l := Link{Name: name, Address: ip.String()}
	if l.Name == "" {
		l.Name = world.InterfaceOf(ip)
	}
	if speed := world.LinkSpeed(l.Name); speed > 0 {
		l.BitPerSec = &speed
	}
	return l
}

// A Trial is the result of starting an interpreter, alone or with a module to import.
type Trial struct {
	Name    string   `json:"name"` // the interpreter, or the module
	Version string   `json:"version"`
	Seconds *float64 `json:"seconds"` // from start to end, of the first try on this node; nil if it failed
	Error   string   `json:"error,omitempty"`
}

// pythonWait bounds an import: loading a framework from a cold network file system may take minutes.
const pythonWait = 3 * time.Minute

func startPython(ctx context.Context, interpreter string) *Trial {
	return new(timed(ctx, interpreter, interpreter, "import sys; print(sys.version.split()[0])"))
}

var moduleName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

func importModule(ctx context.Context, interpreter, module string) Trial {
	if !moduleName.MatchString(module) {
		return Trial{Name: module, Error: fmt.Sprintf("%q is not a module name", module)}
	}
	return timed(ctx, module, interpreter, "import "+module+" as m; print(getattr(m, '__version__', ''))")
}

func timed(ctx context.Context, name, interpreter, program string) Trial {
	s := Trial{Name: name}
	begin := time.Now()
	out, err := trust.AskPython(ctx, interpreter, trust.PythonQuestion{Program: program, Imports: true, Limit: pythonWait})
	if err != nil {
		s.Error = err.Error()
		return s
	}
	s.Version, s.Seconds = strings.TrimSpace(string(out)), new(time.Since(begin).Seconds())
	return s
}

// output runs a program. If it fails, the error ends with the last line of its output.
func output(ctx context.Context, limit time.Duration, name string, args ...string) (string, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(limited, name, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &complaint, time.Second
	err := cmd.Run()
	if err == nil {
		return out.String(), nil
	}
	if limited.Err() != nil && ctx.Err() == nil {
		return "", fmt.Errorf("%s did not end within %v", name, limit)
	}
	if said := strings.TrimSpace(complaint.String()); said != "" {
		err = errors.New(said[strings.LastIndexByte(said, '\n')+1:])
	}
	return "", fmt.Errorf("%s: %w", name, err)
}
