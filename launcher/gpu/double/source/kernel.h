// What a source of kernels needs when it is compiled for the double: as C, for the
// host. A kernel is a function that does the work of so many threads in a loop.
//
//	static void relu_host(const void *args, unsigned long long threads) { … }
//	__attribute__((constructor)) static void relu_is_known(void) { double_kernel("relu", sizeof(struct relu_args), relu_host); }
#pragma once
#include <stddef.h>
#include <stdint.h>

// Addresses in "device memory" are off by this, so that a program which follows
// one itself ends there and then.
#define DEVICE ((uintptr_t)1 << 62)

// Makes a kernel known by its name in PTX, with the size of its one parameter.
// threads is a multiple of the block's size.
void double_kernel(const char *name, size_t bytes, void (*run)(const void *args, unsigned long long threads));
