package simd

import "golang.org/x/sys/cpu"

// native are the sets in assembly that this processor, and its operating system,
// can run.
func native() []*Set {
	var list []*Set
	if x := cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX2 && x.HasFMA {
		list = append(list, &Set{
			name:       "avx512",
			correlates: []correlate{{32, correlate32AVX512}, {16, correlate16AVX512}},
			outers: []outer{
				{32, 12, outer32x12_AVX512}, {32, 1, outer32x1_AVX512},
				{16, 24, outer16x24_AVX512}, {16, 9, outer16x9_AVX512}, {16, 1, outer16x1_AVX512},
			},
			dots:         []dot{{4, 4, dot4x4_AVX512}, {1, 1, dot1x1_AVX512}},
			normalise:    normaliseAVX512,
			normaliseAdd: normaliseAddAVX512,
			rectify:      rectifyAVX512,
			rectifyAdd:   rectifyAddAVX512,
			normGradient: normGradientAVX512,
			moments:      momentsAVX512,
			sgd:          sgdAVX512,
		})
	}
	if x := cpu.X86; x.HasAVX2 && x.HasFMA {
		list = append(list, &Set{
			name:         "avx2",
			correlates:   []correlate{{16, correlate16AVX2}},
			outers:       []outer{{16, 6, outer16x6_AVX2}, {16, 1, outer16x1_AVX2}},
			dots:         []dot{{4, 2, dot4x2_AVX2}, {1, 1, dot1x1_AVX2}},
			normalise:    normaliseAVX2,
			normaliseAdd: normaliseAddAVX2,
			rectify:      rectifyAVX2,
			rectifyAdd:   rectifyAddAVX2,
			normGradient: normGradientAVX2,
			moments:      momentsAVX2,
			sgd:          sgdAVX2,
		})
	}
	return list
}
