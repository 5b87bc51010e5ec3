// One source, two compilers. clang compiles kernels.cu as CUDA to PTX, without any of
// CUDA's headers or libraries; a C compiler makes plain loops of the same functions,
// which the double of CUDA's driver runs in tests.
//
// A kernel has one parameter, a struct by value, and computes one result, or a few,
// from its index: it needs no shared memory, no barriers and no atomic operations, so
// that its results depend on nothing but its arguments, and a loop does the same.
#pragma once

// KERNEL(name, size) begins the function of one index, from 0 to size; its arguments
// are a, a struct name_args. Who launches it sees to it that size, and the elements of
// every array, are below 2³¹.
#ifdef __CUDA__

#define DEVICE_FUNCTION static inline __attribute__((device))

// What a pointer in the arguments points to.
#define AT(pointer) (pointer)

#define KERNEL(name, size) \
	DEVICE_FUNCTION void name##_at(struct name##_args a, int index); \
	extern "C" __attribute__((global)) void name(struct name##_args a) { \
		int index = (int)(__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x()); \
		if (index < (size)) name##_at(a, index); \
	} \
	DEVICE_FUNCTION void name##_at(struct name##_args a, int index)

#else

#include "kernel.h" // the double's
#include <string.h>

#define DEVICE_FUNCTION static inline

#define AT(pointer) ((__typeof__(pointer))((uintptr_t)(pointer) - DEVICE))

#define KERNEL(name, size) \
	static void name##_at(struct name##_args a, int index); \
	static void name##_host(const void *args, unsigned long long threads) { \
		struct name##_args a; \
		memcpy(&a, args, sizeof a); \
		for (int index = 0; (unsigned long long)index < threads && index < (size); index++) name##_at(a, index); \
	} \
	__attribute__((constructor)) static void name##_known(void) { double_kernel(#name, sizeof(struct name##_args), name##_host); } \
	static void name##_at(struct name##_args a, int index)

#endif

// Images as they lie in memory, NHWC: the channels of a point lie together, then come
// its neighbours in the line.
struct shape {
	int images, lines, points, channels;
};

DEVICE_FUNCTION int pixels(struct shape s) { return s.images * s.lines * s.points; }

// How many chunks there are of so many rows.
DEVICE_FUNCTION int chunks(int rows, int chunk) { return (rows + chunk - 1) / chunk; }
