package gputest

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// This file builds a C library with the functions of NVML that scalebench calls, for tests on
// machines without a GPU. A text file describes its GPUs. Every call reads the file again, so that
// a test can change the GPUs at any time:
//
//	time 12.5             seconds on the GPUs' clock; without it, since the first call
//	gpu                   begins the next GPU; what follows is of it
//	power 0:100 10:300    watts at instants, straight lines between them, level outside
//	window 0.25           share of each tenth of a second that the power shown covers
//	average               it has the mean power over the last second (field 185)
//	busy 97               percent
//	memory 1000           bytes in use
//	temperature 64        °C
//	clocks 1980 2619      MHz, of multiprocessors and memory
//	throttled 0 0.25      share of all time in which policy 0 held the clocks down
//	ecc 3 0               errors corrected and not; without it, no ECC
//	mig                   it is divided into instances
//	lost                  it has fallen off the bus
//	fail CALL GPU CODE    the call answers CODE for that GPU; -1: for all
//	hang CALL GPU         the call does not return while this line is here
//
// The energy counter is exactly the integral of the power from time 0 on. In names, the library is
// named "double".

//go:embed nvml_source/nvml.c
var nvmlSource []byte

// NVMLVariable names the environment variable with the text file.
const NVMLVariable = "NVML_DOUBLE"

// BuildNVML compiles the fake library with cc to dir/libnvidia-ml.so.1. The library lacks the
// functions in without, like an older driver's.
func BuildNVML(dir string, without ...string) (string, error) {
	file := filepath.Join(dir, "nvml.c")
	if err := os.WriteFile(file, nvmlSource, 0o600); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "libnvidia-ml.so.1")
	args := []string{"-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", path}
	for _, symbol := range without {
		args = append(args, "-D"+symbol+"=without_"+symbol)
	}
	if out, err := exec.Command("cc", append(args, file, "-lm")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w\n%s", err, out)
	}
	return path, nil
}
