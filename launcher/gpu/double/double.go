// Package double is a C library with the functions of NCCL and of CUDA's driver
// that scalebench calls, for tests on machines without a GPU. It is no
// simulation of a GPU and its speed says nothing; but it really moves and
// reduces: its device memory is the process's own, its streams are threads, and
// the ranks of a communicator are processes that share memory. It is as strict
// as the real ones where a binding can go wrong: a device must be current on the
// calling thread, addresses of device memory cannot be followed, communicators
// do not block, and a call while one is busy is refused.
//
// It is called a double wherever its name shows.
//
// Faults are asked for with environment variables, in the process of one rank;
// an operation is named by its place in the communicator, from 1:
//
//	NCCL_DOUBLE_VERSION=22703  the version that it says it has
//	CUDA_DOUBLE_GPUS=4         the GPUs that it says there are; 0: CUDA finds none
//	NCCL_DOUBLE_DELAY_US=1000  before each operation
//	NCCL_DOUBLE_HANG=5         this operation never begins on this rank
//	NCCL_DOUBLE_ERROR=5        this one ends in an error that NCCL reports later
//	NCCL_DOUBLE_CORRUPT=5      this one's result has a wrong bit on this rank
package double

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed source
var source embed.FS

// Build compiles the double with cc to a library of that name in dir. A name in
// without is renamed, so that the library lacks the function. The error holds
// what the compiler said.
func Build(dir, name string, without ...string) (string, error) {
	work, err := os.MkdirTemp(dir, "double")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, source); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=default", "-o", path}
	for _, symbol := range without {
		args = append(args, "-D"+symbol+"=without_"+symbol)
	}
	for _, file := range []string{"reduce.c", "driver.c", "nccl.c"} {
		args = append(args, filepath.Join(work, "source", file))
	}
	args = append(args, "-lm", "-lpthread", "-lrt")
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w\n%s", err, out)
	}
	return path, nil
}
