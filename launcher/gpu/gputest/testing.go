package gputest

import (
	"fmt"
	"io/fs"
	"os"
)

// During builds the fake library, with kernels unless nil, and calls run with its path. It removes
// the library afterwards, and returns run's result. TestMain calls it with the tests of a package.
func During(kernels fs.FS, run func(path string) int) int {
	status := 1
	err := built(kernels, func(path string) error {
		status = run(path)
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return status
}

// Library returns the fake library as a file's content. A test that writes it to its own file gets
// a separate library, which counts from 1.
func Library(kernels fs.FS) (code []byte, err error) {
	err = built(kernels, func(path string) (err error) {
		code, err = os.ReadFile(path)
		return err
	})
	return code, err
}

// built builds the fake library in a temporary folder and calls use with its path.
func built(kernels fs.FS, use func(path string) error) error {
	dir, err := os.MkdirTemp("", "double")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := BuildKernels(dir, "libgpu-double.so", kernels)
	if err != nil {
		return err
	}
	return use(path)
}
