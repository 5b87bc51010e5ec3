// The driver's functions and types as its documentation declares them, and a
// function around each pointer, since Go cannot call through one.
#pragma once
#include <stdint.h>
#include <stdlib.h>

typedef int CUresult;
typedef int CUdevice;
typedef void *CUcontext;
typedef void *CUstream;
typedef void *CUevent;
typedef unsigned long long CUdeviceptr;

_Static_assert(sizeof(CUdeviceptr) == 8 && sizeof(void *) == 8, "CUDA here is of 64 bits");

struct cuda_table {
	CUresult (*Init)(unsigned);
	CUresult (*DriverGetVersion)(int *);
	CUresult (*GetErrorString)(CUresult, const char **);
	CUresult (*DeviceGetCount)(int *);
	CUresult (*DeviceGet)(CUdevice *, int);
	CUresult (*DeviceGetName)(char *, int, CUdevice);
	CUresult (*PrimaryCtxRetain)(CUcontext *, CUdevice);
	CUresult (*PrimaryCtxRelease)(CUdevice);
	CUresult (*CtxSetCurrent)(CUcontext);
	CUresult (*MemAlloc)(CUdeviceptr *, size_t);
	CUresult (*MemFree)(CUdeviceptr);
	CUresult (*MemcpyHtoDAsync)(CUdeviceptr, const void *, size_t, CUstream);
	CUresult (*MemcpyDtoHAsync)(void *, CUdeviceptr, size_t, CUstream);
	CUresult (*StreamCreate)(CUstream *, unsigned);
	CUresult (*StreamDestroy)(CUstream);
	CUresult (*StreamQuery)(CUstream);
	CUresult (*StreamSynchronize)(CUstream);
	CUresult (*EventCreate)(CUevent *, unsigned);
	CUresult (*EventDestroy)(CUevent);
	CUresult (*EventRecord)(CUevent, CUstream);
	CUresult (*EventQuery)(CUevent);
	CUresult (*EventElapsedTime)(float *, CUevent, CUevent);
};

static inline CUresult cuda_init(struct cuda_table *t) { return t->Init(0); }
static inline CUresult cuda_version(struct cuda_table *t, int *v) { return t->DriverGetVersion(v); }
static inline CUresult cuda_count(struct cuda_table *t, int *n) { return t->DeviceGetCount(n); }
static inline CUresult cuda_device(struct cuda_table *t, CUdevice *d, int i) { return t->DeviceGet(d, i); }
static inline CUresult cuda_name(struct cuda_table *t, char *s, int n, CUdevice d) { return t->DeviceGetName(s, n, d); }
static inline CUresult cuda_retain(struct cuda_table *t, uintptr_t *c, CUdevice d) {
	CUcontext context = NULL;
	CUresult r = t->PrimaryCtxRetain(&context, d);
	*c = (uintptr_t)context;
	return r;
}
static inline CUresult cuda_release(struct cuda_table *t, CUdevice d) { return t->PrimaryCtxRelease(d); }
static inline CUresult cuda_set(struct cuda_table *t, uintptr_t c) { return t->CtxSetCurrent((CUcontext)c); }
static inline CUresult cuda_alloc(struct cuda_table *t, CUdeviceptr *p, size_t n) { return t->MemAlloc(p, n); }
static inline CUresult cuda_free(struct cuda_table *t, CUdeviceptr p) { return t->MemFree(p); }

// A copy of memory that is not pinned may go on after the call: Go's memory is
// only lent for the call, so that the copy has to end in it.
static inline CUresult cuda_upload(struct cuda_table *t, CUdeviceptr to, const void *from, size_t n, uintptr_t s) {
	CUresult r = t->MemcpyHtoDAsync(to, from, n, (CUstream)s);
	return r != 0 ? r : t->StreamSynchronize((CUstream)s);
}
static inline CUresult cuda_download(struct cuda_table *t, void *to, CUdeviceptr from, size_t n, uintptr_t s) {
	CUresult r = t->MemcpyDtoHAsync(to, from, n, (CUstream)s);
	return r != 0 ? r : t->StreamSynchronize((CUstream)s);
}

static inline CUresult cuda_stream(struct cuda_table *t, uintptr_t *s) {
	CUstream stream = NULL;
	CUresult r = t->StreamCreate(&stream, 1); // CU_STREAM_NON_BLOCKING: does not wait for the null stream
	*s = (uintptr_t)stream;
	return r;
}
static inline CUresult cuda_stream_destroy(struct cuda_table *t, uintptr_t s) { return t->StreamDestroy((CUstream)s); }
static inline CUresult cuda_stream_query(struct cuda_table *t, uintptr_t s) { return t->StreamQuery((CUstream)s); }
static inline CUresult cuda_event(struct cuda_table *t, uintptr_t *e) {
	CUevent event = NULL;
	CUresult r = t->EventCreate(&event, 0);
	*e = (uintptr_t)event;
	return r;
}
static inline CUresult cuda_event_destroy(struct cuda_table *t, uintptr_t e) { return t->EventDestroy((CUevent)e); }
static inline CUresult cuda_event_record(struct cuda_table *t, uintptr_t e, uintptr_t s) { return t->EventRecord((CUevent)e, (CUstream)s); }
static inline CUresult cuda_event_query(struct cuda_table *t, uintptr_t e) { return t->EventQuery((CUevent)e); }
static inline CUresult cuda_elapsed(struct cuda_table *t, float *ms, uintptr_t a, uintptr_t b) { return t->EventElapsedTime(ms, (CUevent)a, (CUevent)b); }
static inline const char *cuda_error(struct cuda_table *t, CUresult r) {
	const char *s = NULL;
	return t->GetErrorString(r, &s) == 0 ? s : NULL;
}
