// What the parts of the double share. See double.go for what it is.
#pragma once
#include "kernel.h"

typedef int CUresult;

enum {
	CUDA_INVALID_VALUE = 1,
	CUDA_OUT_OF_MEMORY = 2,
	CUDA_NOT_INITIALIZED = 3,
	CUDA_NO_DEVICE = 100,
	CUDA_INVALID_DEVICE = 101,
	CUDA_INVALID_CONTEXT = 201,
	CUDA_INVALID_PTX = 218,
	CUDA_INVALID_HANDLE = 400,
	CUDA_NOT_FOUND = 500,
	CUDA_NOT_READY = 600,
	CUDA_ILLEGAL_ADDRESS = 700,
	CUDA_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_CAPTURE_UNSUPPORTED = 900,
	CUDA_CAPTURE_INVALIDATED = 901,
	CUDA_CAPTURE_UNMATCHED = 903,
	CUDA_CAPTURE_UNJOINED = 904,
	CUDA_CAPTURE_ISOLATION = 905,
	CUDA_CAPTURED_EVENT = 907,
};

enum { SUCCESS, UNHANDLED_CUDA, SYSTEM, INTERNAL, INVALID_ARGUMENT, INVALID_USAGE, REMOTE, IN_PROGRESS };

enum type { INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, TYPES };
enum reduction { SUM, PROD, MAX, MIN, AVG, REDUCTIONS };

#define HOST(p) ((unsigned char *)((uintptr_t)(p) - DEVICE))

struct stream;
// Appends work to the stream; the work gets a copy of these bytes.
void stream_enqueue(struct stream *s, void (*work)(void *), const void *of, size_t bytes);
// Whether what is put into the stream goes into a graph instead.
int stream_captures(struct stream *s);
int stream_number(const struct stream *s); // from 1, in the order in which they were made
// Waits for all streams. A task that hangs makes this wait for ever, as CUDA does.
void wait_for_device(void);
// The GPU that is current on this thread, or -1.
int current_device(void);
// The error that the device met, or 0. It is final: work does nothing any more,
// and every call answers it.
CUresult device_error(void);
void set_device_error(CUresult r);
void device_fail(CUresult r); // and wakes those that wait

// Writes a call down, where that is asked for, with the stream and the event that it is
// about; NULL: none.
struct event;
void write_down(const char *call, const struct stream *s, const struct event *e);

#define NEED_CONTEXT NEED_CONTEXT_ON(NULL, NULL)
#define NEED_CONTEXT_ON(stream, event) \
	write_down(__func__, stream, event); \
	if (current_device() < 0) return CUDA_INVALID_CONTEXT; \
	if (device_error() != 0) return device_error()

// What a thread that captures must not call, since a graph would not repeat it; the
// graph comes to nothing.
CUresult spoil_capture(void);
#define NEED_NO_CAPTURE \
	if (spoil_capture() != 0) return CUDA_CAPTURE_UNSUPPORTED

size_t size_of(enum type t);
// to[i] = the reduction over ranks of slots[rank][i], for count elements. Sums
// of floating-point numbers are made in double precision, in order of ranks,
// and rounded once; integers wrap around.
void reduce(unsigned char *to, unsigned char *const *slots, int ranks, size_t count, enum type t, enum reduction r);

// The number in an environment variable, or what is said for a missing one.
long setting(const char *name, long otherwise);
