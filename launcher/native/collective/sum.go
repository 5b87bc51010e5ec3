package collective

// This file adds arrays of numbers, element by element: with AVX where the
// processor has it, else in Go. Either way an element is one IEEE 754 addition,
// so that both give the same bits.

// sumFloat32 sets dst[i] = a[i] + b[i] for every element of dst. a and b are at
// least as long as dst; dst may be a or b itself, but must not overlap them in
// another way.
func sumFloat32(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	whole := 0
	if vectorised {
		whole = len(dst) &^ (block - 1)
		if whole > 0 {
			addBlocks(&dst[0], &a[0], &b[0], whole)
		}
	}
	add(dst[whole:], a[whole:], b[whole:])
}

// sumFloat64 is sumFloat32 in double precision.
func sumFloat64(dst, a, b []float64) { add(dst, a, b) }

// sumInt64 is sumFloat32 for integers; a sum beyond an int64 wraps around.
func sumInt64(dst, a, b []int64) { add(dst, a, b) }

func add[T float32 | float64 | int64](dst, a, b []T) {
	a, b = a[:len(dst)], b[:len(dst)] // saves the loop its bounds checks
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}
