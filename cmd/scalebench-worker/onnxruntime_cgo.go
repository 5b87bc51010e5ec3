//go:build onnxruntime && !training

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/scalebench/scalebench/launcher/serve/onnxruntime"
	"github.com/scalebench/scalebench/launcher/serve/target"
)

// openONNX loads a model file with the library from an interpreter's packages or the
// system.
func openONNX(ctx context.Context, python, path string, threads int) (target.Local, func(), error) {
	l, err := onnxruntime.Open(onnxruntime.Find(ctx, python, os.Getenv))
	if err != nil {
		return nil, nil, err
	}
	m, err := l.Load(path, threads)
	if err != nil {
		return nil, nil, fmt.Errorf("workload.model: %w", err)
	}
	fmt.Printf("onnxruntime %s, %s\n", l.Version(), l.Path())
	return m, m.Close, nil
}

// onnxruntimeVersion returns the library's version, or "".
func onnxruntimeVersion(ctx context.Context, python string) string {
	l, err := onnxruntime.Open(onnxruntime.Find(ctx, python, os.Getenv))
	if err != nil {
		return "" // the run reports the error
	}
	return l.Version()
}
