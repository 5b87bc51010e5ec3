// What is said of a GPU, for clang's CUDA without any of CUDA's headers or libraries.
#pragma once

#define DEVICE_FUNCTION static inline __attribute__((device))

// KERNEL(name, size) begins the function of one index, from 0 to size; its arguments
// are a, a struct name_args, which is the kernel's one parameter. Who launches it sees
// to it that size, and the elements of every array, are below 2³¹.
//
// Each index computes one result, or a few: it needs no shared memory, no barriers and
// no atomic operations, so that results depend on nothing but the arguments.
#define KERNEL(name, size) \
	DEVICE_FUNCTION void name##_at(struct name##_args a, int index); \
	extern "C" __attribute__((global)) void name(struct name##_args a) { \
		int index = (int)(__nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x() + __nvvm_read_ptx_sreg_tid_x()); \
		if (index < (size)) name##_at(a, index); \
	} \
	DEVICE_FUNCTION void name##_at(struct name##_args a, int index)
