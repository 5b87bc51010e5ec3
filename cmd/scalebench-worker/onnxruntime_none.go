//go:build !onnxruntime && !training

package main

import (
	"context"
	"errors"

	"github.com/scalebench/scalebench/launcher/serve/target"
)

// openONNX returns an error that says what to do: this worker links no C library.
func openONNX(context.Context, string, string, int) (target.Local, func(), error) {
	return nil, nil, errors.New("this worker cannot load onnxruntime; build one that can (make worker-onnxruntime) and name it in the site file (worker = …)")
}

// onnxruntimeVersion returns "": this worker cannot load the library.
func onnxruntimeVersion(context.Context, string) string { return "" }
