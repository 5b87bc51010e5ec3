// The driver's part that is about devices: their memory is the process's own.
#include "double.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int initialised;
static _Thread_local int current = -1;

int current_device(void) { return current; }

static atomic_int device_failure;

CUresult device_error(void) { return atomic_load(&device_failure); }

void set_device_error(CUresult r) { atomic_store(&device_failure, r); }

long setting(const char *name, long otherwise) {
	const char *s = getenv(name);
	return s != NULL && *s != 0 ? strtol(s, NULL, 10) : otherwise;
}

static pthread_once_t opened = PTHREAD_ONCE_INIT;
static int calls = -1; // the file

static void open_calls(void) {
	const char *path = getenv("CUDA_DOUBLE_CALLS");
	if (path == NULL || *path == 0) return;
	calls = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (calls < 0) abort();
}

void write_down(const char *call, const struct stream *s, const struct event *e) {
	pthread_once(&opened, open_calls);
	if (calls < 0) return;
	char line[128];
	int n = snprintf(line, sizeof line, "%s %d %p\n", call, s != NULL ? stream_number(s) : 0, (const void *)e);
	if (write(calls, line, (size_t)n) != n) abort();
}

CUresult cuInit(unsigned flags) {
	if (setting("CUDA_DOUBLE_GPUS", 1) == 0) return CUDA_NO_DEVICE;
	initialised = flags == 0;
	return initialised ? 0 : CUDA_INVALID_VALUE;
}

CUresult cuDriverGetVersion(int *v) {
	*v = 12040;
	return 0;
}

CUresult cuGetErrorString(CUresult r, const char **s) {
	switch (r) {
	case CUDA_INVALID_VALUE: *s = "invalid argument"; return 0;
	case CUDA_OUT_OF_MEMORY: *s = "out of memory"; return 0;
	case CUDA_NOT_INITIALIZED: *s = "initialization error"; return 0;
	case CUDA_NO_DEVICE: *s = "no CUDA-capable device is detected"; return 0;
	case CUDA_INVALID_DEVICE: *s = "invalid device ordinal"; return 0;
	case CUDA_INVALID_CONTEXT: *s = "invalid device context"; return 0;
	case CUDA_INVALID_PTX: *s = "a PTX JIT compilation failed"; return 0;
	case CUDA_INVALID_HANDLE: *s = "invalid resource handle"; return 0;
	case CUDA_NOT_FOUND: *s = "named symbol not found"; return 0;
	case CUDA_NOT_READY: *s = "device not ready"; return 0;
	case CUDA_ILLEGAL_ADDRESS: *s = "an illegal memory access was encountered"; return 0;
	case CUDA_CAPTURE_UNSUPPORTED: *s = "operation not permitted when stream is capturing"; return 0;
	case CUDA_CAPTURE_INVALIDATED: *s = "operation failed due to a previous error during capture"; return 0;
	case CUDA_CAPTURE_UNMATCHED: *s = "operation failed because capture was not started in this stream"; return 0;
	case CUDA_CAPTURE_UNJOINED: *s = "capturing stream has unjoined work"; return 0;
	case CUDA_CAPTURE_ISOLATION: *s = "dependency created on uncaptured work in another stream"; return 0;
	case CUDA_CAPTURED_EVENT: *s = "operation not permitted on an event last recorded in a capturing stream"; return 0;
	case CUDA_LAUNCH_OUT_OF_RESOURCES: *s = "too many resources requested for launch"; return 0;
	}
	*s = NULL;
	return CUDA_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *n) {
	*n = (int)setting("CUDA_DOUBLE_GPUS", 1);
	return initialised ? 0 : CUDA_NOT_INITIALIZED;
}

CUresult cuDeviceGet(int *device, int ordinal) {
	*device = ordinal;
	return ordinal >= 0 && ordinal < setting("CUDA_DOUBLE_GPUS", 1) ? 0 : CUDA_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int size, int device) {
	(void)device;
	strncpy(name, "DOUBLE, not a GPU", (size_t)size);
	return 0;
}

// A context is the device's number and one.
CUresult cuDevicePrimaryCtxRetain(void **context, int device) {
	*context = (void *)(uintptr_t)(device + 1);
	return 0;
}

CUresult cuDevicePrimaryCtxRelease_v2(int device) {
	(void)device;
	return 0;
}

CUresult cuCtxSetCurrent(void *context) {
	current = (int)(uintptr_t)context - 1;
	return 0;
}

// The fake reports a GPU of 2020 with 16 GiB.
CUresult cuDeviceGetAttribute(int *v, int attribute, int device) {
	(void)device;
	if (device_error() != 0) return device_error();
	switch (attribute) {
	case 75: *v = (int)setting("CUDA_DOUBLE_CAPABILITY", 80) / 10; return 0; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
	case 76: *v = (int)setting("CUDA_DOUBLE_CAPABILITY", 80) % 10; return 0; // …_MINOR
	case 16: *v = 1; return 0; // CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
	}
	return CUDA_INVALID_VALUE;
}

// Bytes before and after an allocation must not change.
enum { MARGIN = 256, UNTOUCHED = 0xa5 };

struct allocation {
	size_t bytes, magic;
};

static const size_t magic = 0x5ca1eb0c4d0b1e00;
static atomic_long allocations;
static atomic_size_t allocated;

static size_t memory(void) { return (size_t)setting("CUDA_DOUBLE_MEMORY", 16L << 30); }

CUresult cuMemGetInfo_v2(size_t *left, size_t *total) {
	NEED_CONTEXT;
	*total = memory();
	*left = *total - atomic_load(&allocated);
	return 0;
}

CUresult cuMemAlloc_v2(unsigned long long *p, size_t bytes) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	if (bytes == 0) return CUDA_INVALID_VALUE;
	if (atomic_fetch_add(&allocations, 1) + 1 == setting("CUDA_DOUBLE_OUT_OF_MEMORY", 0)) return CUDA_OUT_OF_MEMORY;
	void *at;
	if (bytes > memory() - atomic_load(&allocated) || posix_memalign(&at, MARGIN, bytes + 2 * MARGIN) != 0) return CUDA_OUT_OF_MEMORY;
	memset(at, UNTOUCHED, bytes + 2 * MARGIN); // memory is not zeroed
	*(struct allocation *)at = (struct allocation){bytes, magic};
	atomic_fetch_add(&allocated, bytes);
	*p = (uintptr_t)at + MARGIN + DEVICE;
	return 0;
}

CUresult cuMemFree_v2(unsigned long long p) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	if (p < DEVICE) return CUDA_INVALID_VALUE;
	wait_for_device();
	struct allocation *a = (struct allocation *)(HOST(p) - MARGIN);
	if (a->magic != magic) return CUDA_INVALID_VALUE;
	unsigned char *at = (unsigned char *)a;
	for (size_t i = 0; i < MARGIN; i++)
		if ((i >= sizeof *a && at[i] != UNTOUCHED) || at[MARGIN + a->bytes + i] != UNTOUCHED) {
			fprintf(stderr, "DOUBLE: %zu bytes of device memory were freed, and something has written before or behind them\n", a->bytes);
			return CUDA_ILLEGAL_ADDRESS;
		}
	atomic_fetch_sub(&allocated, a->bytes);
	a->magic = 0;
	free(a);
	return 0;
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned flags) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	if (bytes == 0 || flags != 0) return CUDA_INVALID_VALUE;
	if (posix_memalign(p, 4096, bytes) != 0) return CUDA_OUT_OF_MEMORY;
	memset(*p, UNTOUCHED, bytes);
	return 0;
}

CUresult cuMemFreeHost(void *p) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	if (p == NULL) return CUDA_INVALID_VALUE;
	wait_for_device();
	free(p);
	return 0;
}
