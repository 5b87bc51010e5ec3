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
typedef void *CUmodule;
typedef void *CUfunction;
typedef void *CUgraph;
typedef void *CUgraphExec;
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
	CUresult (*StreamWaitEvent)(CUstream, CUevent, unsigned);
	CUresult (*DeviceGetAttribute)(int *, int, CUdevice);
	CUresult (*MemGetInfo)(size_t *, size_t *);
	CUresult (*MemHostAlloc)(void **, size_t, unsigned);
	CUresult (*MemFreeHost)(void *);
	CUresult (*MemcpyDtoDAsync)(CUdeviceptr, CUdeviceptr, size_t, CUstream);
	CUresult (*MemsetD8Async)(CUdeviceptr, unsigned char, size_t, CUstream);
	CUresult (*ModuleLoadDataEx)(CUmodule *, const void *, unsigned, int *, void **);
	CUresult (*ModuleUnload)(CUmodule);
	CUresult (*ModuleGetFunction)(CUfunction *, CUmodule, const char *);
	CUresult (*LaunchKernel)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **);
	CUresult (*StreamBeginCapture)(CUstream, int);
	CUresult (*StreamEndCapture)(CUstream, CUgraph *);
	CUresult (*GraphInstantiate)(CUgraphExec *, CUgraph, unsigned long long);
	CUresult (*GraphLaunch)(CUgraphExec, CUstream);
	CUresult (*GraphDestroy)(CUgraph);
	CUresult (*GraphExecDestroy)(CUgraphExec);
	void *double_notice; // of the double only
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
static inline CUresult cuda_wait(struct cuda_table *t, uintptr_t s, uintptr_t e) { return t->StreamWaitEvent((CUstream)s, (CUevent)e, 0); }

static inline CUresult cuda_attribute(struct cuda_table *t, int *v, int attribute, CUdevice d) { return t->DeviceGetAttribute(v, attribute, d); }
static inline CUresult cuda_memory(struct cuda_table *t, size_t *unused, size_t *total) { return t->MemGetInfo(unused, total); }
static inline CUresult cuda_host_alloc(struct cuda_table *t, void **p, size_t n) { return t->MemHostAlloc(p, n, 0); }
static inline CUresult cuda_host_free(struct cuda_table *t, void *p) { return t->MemFreeHost(p); }
static inline CUresult cuda_enqueue_upload(struct cuda_table *t, CUdeviceptr to, const void *from, size_t n, uintptr_t s) { return t->MemcpyHtoDAsync(to, from, n, (CUstream)s); }
static inline CUresult cuda_enqueue_download(struct cuda_table *t, void *to, CUdeviceptr from, size_t n, uintptr_t s) { return t->MemcpyDtoHAsync(to, from, n, (CUstream)s); }
static inline CUresult cuda_enqueue_copy(struct cuda_table *t, CUdeviceptr to, CUdeviceptr from, size_t n, uintptr_t s) { return t->MemcpyDtoDAsync(to, from, n, (CUstream)s); }
static inline CUresult cuda_fill(struct cuda_table *t, CUdeviceptr to, unsigned char v, size_t n, uintptr_t s) { return t->MemsetD8Async(to, v, n, (CUstream)s); }

// info and errors are buffers of so many bytes for what the driver's compiler
// says; what it says is cut to fit, and ends in a zero.
static inline CUresult cuda_load(struct cuda_table *t, uintptr_t *m, const void *image, char *info, char *errors, size_t bytes) {
	// CU_JIT_INFO_LOG_BUFFER, its _SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER, its size.
	int options[] = {3, 4, 5, 6};
	void *values[] = {info, (void *)bytes, errors, (void *)bytes};
	CUmodule module = NULL;
	CUresult r = t->ModuleLoadDataEx(&module, image, 4, options, values);
	*m = (uintptr_t)module;
	return r;
}
static inline CUresult cuda_unload(struct cuda_table *t, uintptr_t m) { return t->ModuleUnload((CUmodule)m); }
static inline CUresult cuda_function(struct cuda_table *t, uintptr_t *f, uintptr_t m, const char *name) {
	CUfunction function = NULL;
	CUresult r = t->ModuleGetFunction(&function, (CUmodule)m, name);
	*f = (uintptr_t)function;
	return r;
}
// The driver copies the one parameter before it returns.
static inline CUresult cuda_launch(struct cuda_table *t, uintptr_t f, unsigned blocks, unsigned threads, uintptr_t s, void *args) {
	void *parameters[] = {args};
	return t->LaunchKernel((CUfunction)f, blocks, 1, 1, threads, 1, 1, 0, (CUstream)s, parameters, NULL);
}

// CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may go on as they like.
static inline CUresult cuda_begin_capture(struct cuda_table *t, uintptr_t s) { return t->StreamBeginCapture((CUstream)s, 1); }
static inline CUresult cuda_end_capture(struct cuda_table *t, uintptr_t s, uintptr_t *g) {
	CUgraph graph = NULL;
	CUresult r = t->StreamEndCapture((CUstream)s, &graph);
	*g = (uintptr_t)graph;
	return r;
}
static inline CUresult cuda_instantiate(struct cuda_table *t, uintptr_t *e, uintptr_t g) {
	CUgraphExec exec = NULL;
	CUresult r = t->GraphInstantiate(&exec, (CUgraph)g, 0);
	*e = (uintptr_t)exec;
	return r;
}
static inline CUresult cuda_graph_launch(struct cuda_table *t, uintptr_t e, uintptr_t s) { return t->GraphLaunch((CUgraphExec)e, (CUstream)s); }
static inline CUresult cuda_graph_destroy(struct cuda_table *t, uintptr_t g) { return t->GraphDestroy((CUgraph)g); }
static inline CUresult cuda_exec_destroy(struct cuda_table *t, uintptr_t e) { return t->GraphExecDestroy((CUgraphExec)e); }

static inline const char *cuda_error(struct cuda_table *t, CUresult r) {
	const char *s = NULL;
	return t->GetErrorString(r, &s) == 0 ? s : NULL;
}
