// What a source of kernels needs when it is compiled for the double: as C, for the
// host.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Addresses in "device memory" are off by this, so that a program which follows
// one itself ends there and then.
#define DEVICE ((uintptr_t)1 << 62)
#define HOST(p) ((unsigned char *)((uintptr_t)(p) - DEVICE))

// Makes a kernel known by its name in PTX, with the size of its one parameter. run
// does the work of so many threads, a multiple of the block's size.
void double_kernel(const char *name, size_t bytes, void (*run)(const void *args, unsigned long long threads));

// Makes the kernel NAME known, which has struct NAME_args and a function NAME_host.
#define HOST_KERNEL(name) \
	__attribute__((constructor)) static void name##_is_known(void) { double_kernel(#name, sizeof(struct name##_args), name##_host); }
