package collective

import "golang.org/x/sys/cpu"

var vectorised = cpu.X86.HasAVX

// block is the number of elements that addBlocks adds at a time.
const block = 32

// addBlocks sets dst[i] = a[i] + b[i] for i < n, a multiple of block.
//
//go:noescape
func addBlocks(dst, a, b *float32, n int)
