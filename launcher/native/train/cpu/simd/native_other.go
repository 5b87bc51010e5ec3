//go:build !amd64

package simd

func native() []*Set { return nil }
