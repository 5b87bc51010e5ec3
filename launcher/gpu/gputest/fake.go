// Package gputest builds a C library with the functions of CUDA's driver, cuBLAS and NCCL that
// scalebench calls, for tests on machines without a GPU. A second library has those of NVML
// (nvml.go). It does not simulate a GPU, and its speed means nothing, but it does move and reduce
// data: its device memory is memory of the process, its streams are threads, and the ranks of a
// communicator are processes that share memory. It is as strict as the real libraries about
// mistakes of a binding. A device must be current on the calling thread, addresses of device memory
// cannot be dereferenced, communicators do not block, and a call is refused while the communicator
// is busy.
//
// Its name in outputs is "double".
//
// A kernel runs as the C function into which its PTX was translated, instruction by instruction,
// when the library was built (Translate). Each entry of a module must have such a function, with a
// parameter of the same size. Kernels have one dimension and one parameter. Graphs repeat copies,
// fills, kernels and products in the order in which they were captured; collectives cannot be
// captured.
//
// Environment variables of a rank's process inject faults. Allocations of device memory, launches
// and products are numbered per process, operations of NCCL per communicator, from 1:
//
//	CUDA_DOUBLE_GPUS=4             the number of GPUs that it reports; 0: CUDA finds none
//	CUDA_DOUBLE_CAPABILITY=75      the compute capability that it reports: 7.5
//	CUDA_DOUBLE_MEMORY=1000000     the bytes of memory that it reports for a GPU
//	CUDA_DOUBLE_OUT_OF_MEMORY=5    this allocation is refused
//	CUDA_DOUBLE_DELAY_US=1000      before each kernel
//	CUDA_DOUBLE_LAUNCH_ERROR=5     this launch is refused
//	CUDA_DOUBLE_GRAPH_ERROR=5      this launch of a graph is refused
//	CUDA_DOUBLE_HANG=5             this one's kernel never begins
//	CUDA_DOUBLE_ILLEGAL_ADDRESS=5  this one's kernel uses an invalid address: no more work
//	                               is done, and every later call returns that error
//
//	CUBLAS_DOUBLE_OUT_OF_MEMORY=1  no handle is made
//	CUBLAS_DOUBLE_ERROR=5          this product is refused
//	CUBLAS_DOUBLE_CORRUPT=5        this one's last element is wrong
//
//	NCCL_DOUBLE_VERSION=22703  the version that it reports
//	NCCL_DOUBLE_DELAY_US=1000  before each operation
//	NCCL_DOUBLE_HANG=5         this operation never begins on this rank
//	NCCL_DOUBLE_ERROR=5        this one ends in an error that NCCL reports later
//	NCCL_DOUBLE_CORRUPT=5      this one's result has a wrong bit on this rank
//
// With CUDA_DOUBLE_CALLS=file, a process writes its calls to a file, in order: the function, the
// number of the stream (from 1; 0: none) and the event. Queries of properties and errors are left
// out.
package gputest

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed source
var source embed.FS

// Build compiles the fake library with cc to dir/name and returns its path. Functions in without
// are renamed, so that the library lacks them. The error contains the compiler's messages.
func Build(dir, name string, without ...string) (string, error) {
	return BuildKernels(dir, name, nil, without...)
}

// BuildKernels is like Build, and adds kernels: every *.ptx file in the top folder of kernels,
// translated to C.
func BuildKernels(dir, name string, kernels fs.FS, without ...string) (string, error) {
	work, err := os.MkdirTemp(dir, "double")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, source); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	args := []string{"-std=gnu11", "-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=default", "-o", path, "-I" + filepath.Join(work, "source")}
	for _, symbol := range without {
		args = append(args, "-D"+symbol+"=without_"+symbol)
	}
	for _, file := range []string{"reduce.c", "driver.c", "stream.c", "module.c", "cublas.c", "nccl.c"} {
		args = append(args, filepath.Join(work, "source", file))
	}
	if kernels != nil {
		files, err := fs.Glob(kernels, "*.ptx")
		if err != nil {
			return "", err
		}
		for _, file := range files {
			ptx, err := fs.ReadFile(kernels, file)
			if err != nil {
				return "", err
			}
			c, err := Translate(ptx)
			if err != nil {
				return "", fmt.Errorf("%s: %w", file, err)
			}
			translated := filepath.Join(work, file+".c")
			if err := os.WriteFile(translated, c, 0o600); err != nil {
				return "", err
			}
			args = append(args, translated)
		}
	}
	args = append(args, "-lm", "-lpthread", "-lrt")
	if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w\n%s", err, out)
	}
	return path, nil
}
