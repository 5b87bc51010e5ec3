// What is said of a GPU, for clang's CUDA, or its HIP, without any of their headers or
// libraries.
#pragma once

#if defined __HIP__ // AMD: it compiles, and has never been launched
#define BLOCK __builtin_amdgcn_workgroup_id_x()
#define THREADS __builtin_amdgcn_workgroup_size_x()
#define THREAD __builtin_amdgcn_workitem_id_x()
#else
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define THREADS __nvvm_read_ptx_sreg_ntid_x()
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#endif

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
		int index = (int)(BLOCK * THREADS + THREAD); \
		if (index < (size)) name##_at(a, index); \
	} \
	DEVICE_FUNCTION void name##_at(struct name##_args a, int index)
