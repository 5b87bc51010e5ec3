// What the parts of the double share. See double.go for what it is.
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { CUDA_INVALID_VALUE = 1, CUDA_NOT_INITIALIZED = 3, CUDA_INVALID_DEVICE = 101, CUDA_INVALID_CONTEXT = 201, CUDA_NOT_READY = 600 };

enum { SUCCESS, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };

enum type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, TYPES };
enum reduction { SUM, PROD, MAX, MIN, AVG, REDUCTIONS };

// Addresses in "device memory" are off by this, so that a program which follows
// one itself ends there and then.
#define DEVICE ((uintptr_t)1 << 62)
#define HOST(p) ((unsigned char *)((uintptr_t)(p) - DEVICE))

struct stream;
// Puts work behind what the stream has to do.
void stream_enqueue(struct stream *s, void (*work)(void *), void *of);
// The GPU that is current on this thread, or -1.
int current_device(void);

size_t size_of(enum type t);
// to[i] = the reduction over ranks of slots[rank][i], for count elements. Sums
// of floating-point numbers are made in double precision, in order of ranks,
// and rounded once; integers wrap around.
void reduce(unsigned char *to, unsigned char *const *slots, int ranks, size_t count, enum type t, enum reduction r);

// The number in an environment variable, or what is said for a missing one.
long setting(const char *name, long otherwise);
