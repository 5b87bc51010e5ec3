//go:build python && frameworks

package framework

import "testing"

// BenchmarkFrameworkHooks is BenchmarkPyTorchHooks for every Python framework, each in its lock's environment.
func BenchmarkFrameworkHooks(b *testing.B) {
	for _, f := range All {
		if f.Imports == nil {
			continue
		}
		b.Run(f.Name, func(b *testing.B) { benchmarkHooks(b, f.Name) })
	}
}
