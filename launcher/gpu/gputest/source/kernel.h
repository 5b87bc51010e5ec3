// What kernels need that were translated from PTX (ptx.go): each is a function that
// does the work of so many threads in a loop.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Addresses in "device memory" are off by this, so that a program which follows
// one itself ends there and then.
#define DEVICE ((uintptr_t)1 << 62)

// Makes a kernel known by its name in PTX, with the size of its one parameter.
// threads is a multiple of the block's size.
void double_kernel(const char *name, size_t bytes, void (*run)(const void *args, unsigned long long threads));
