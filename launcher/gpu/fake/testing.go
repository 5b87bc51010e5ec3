package fake

import (
	"fmt"
	"io/fs"
	"os"
)

// During builds the double with kernels, which may be nil, for as long as run takes,
// the tests of a package, and returns what run does: TestMain's exit status.
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

// built builds the double in a folder that is there until use returns.
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
