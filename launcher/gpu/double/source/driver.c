// The driver's part: device memory in the process's own, and streams as threads.
#include "double.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct task {
	void (*work)(void *);
	struct task *next;
	size_t bytes;
	unsigned char of[] __attribute__((aligned(16)));
};

struct stream {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct task *first, **last;
	int waiting, ending; // tasks that have not ended
	struct stream *next;
	struct graph *into;         // while it captures
	struct stream *next_inside; // of those that capture into the same graph
	int captured, joined;       // tasks, and those that the graph's own stream waits for
};

// A graph is what was captured, in the order of the calls: nothing that is called
// waits for what is called later, so that one stream can repeat it all.
struct graph {
	struct task *first, **last;
	struct stream *streams; // the last is its own
	int spoilt;
};

// All streams that there are, for calls that wait for the device.
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stream *all;

// A moment is one record of an event: a new record makes the event forget it,
// and whoever waits for it still does.
struct moment {
	int reached, holders;
	struct timespec at;
};

struct event {
	struct moment *last; // NULL: never recorded
	struct stream *in;   // recorded in this stream while it captured, after so many tasks
	int after;
};

// The graph that this thread captures.
static _Thread_local struct graph *capture;

CUresult spoil_capture(void) {
	if (capture == NULL) return 0;
	capture->spoilt = 1;
	return CUDA_CAPTURE_UNSUPPORTED;
}

int stream_captures(struct stream *s) { return s->into != NULL; }

static pthread_mutex_t moment_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moment_changed = PTHREAD_COND_INITIALIZER;

static int initialised;
static _Thread_local int current = -1;

int current_device(void) { return current; }

static atomic_int device_failure;

CUresult device_error(void) { return atomic_load(&device_failure); }

void device_fail(CUresult r) {
	atomic_store(&device_failure, r);
	pthread_mutex_lock(&moment_lock);
	pthread_cond_broadcast(&moment_changed);
	pthread_mutex_unlock(&moment_lock);
}

long setting(const char *name, long otherwise) {
	const char *s = getenv(name);
	return s != NULL && *s != 0 ? strtol(s, NULL, 10) : otherwise;
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

// The double is no GPU at all; it says it is one of 2020, of 16 GiB.
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

// Before and behind an allocation lie bytes that must stay as they are.
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
	memset(at, UNTOUCHED, bytes + 2 * MARGIN); // nobody may count on zeros
	*(struct allocation *)at = (struct allocation){bytes, magic};
	atomic_fetch_add(&allocated, bytes);
	*p = (uintptr_t)at + MARGIN + DEVICE;
	return 0;
}

static void wait_for_device(void);

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

static void *serve(void *of) {
	struct stream *s = of;
	pthread_mutex_lock(&s->lock);
	for (;;) {
		struct task *t = s->first;
		if (t == NULL) {
			if (s->ending) break;
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		s->first = t->next;
		if (s->first == NULL) s->last = &s->first;
		pthread_mutex_unlock(&s->lock);
		t->work(t->of);
		free(t);
		pthread_mutex_lock(&s->lock);
		s->waiting--;
		pthread_cond_broadcast(&s->changed);
	}
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_lock(&all_lock);
	struct stream **at = &all;
	while (*at != s) at = &(*at)->next;
	*at = s->next;
	pthread_mutex_unlock(&all_lock);
	free(s);
	return NULL;
}

CUresult cuStreamCreate(struct stream **out, unsigned flags) {
	NEED_CONTEXT;
	if (flags != 1) return CUDA_INVALID_VALUE;
	struct stream *s = calloc(1, sizeof *s);
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	pthread_mutex_lock(&all_lock);
	s->next = all;
	all = s;
	pthread_mutex_unlock(&all_lock);
	pthread_create(&s->thread, NULL, serve, s);
	pthread_detach(s->thread);
	*out = s;
	return 0;
}

// As the real one: it returns at once, and the stream is gone when its work is.
CUresult cuStreamDestroy_v2(struct stream *s) {
	NEED_CONTEXT;
	pthread_mutex_lock(&s->lock);
	s->ending = 1;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

void stream_enqueue(struct stream *s, void (*work)(void *), const void *of, size_t bytes) {
	struct task *t = malloc(sizeof *t + bytes);
	t->work = work;
	t->next = NULL;
	t->bytes = bytes;
	memcpy(t->of, of, bytes);
	if (s->into != NULL) {
		*s->into->last = t;
		s->into->last = &t->next;
		s->captured++;
		return;
	}
	pthread_mutex_lock(&s->lock);
	*s->last = t;
	s->last = &t->next;
	s->waiting++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

static void idle(struct stream *s) {
	pthread_mutex_lock(&s->lock);
	while (s->waiting > 0) pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
}

// A task that hangs makes this wait for ever, as CUDA does.
static void wait_for_device(void) {
	pthread_mutex_lock(&all_lock);
	for (struct stream *s = all; s != NULL; s = s->next) idle(s);
	pthread_mutex_unlock(&all_lock);
}

CUresult cuStreamQuery(struct stream *s) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	pthread_mutex_lock(&s->lock);
	int waiting = s->waiting;
	pthread_mutex_unlock(&s->lock);
	return waiting > 0 ? CUDA_NOT_READY : 0;
}

CUresult cuStreamSynchronize(struct stream *s) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	idle(s);
	return device_error();
}

struct copy {
	void *to;
	const void *from;
	size_t bytes;
};

static void copy(void *of) {
	struct copy *c = of;
	if (device_error() == 0) memcpy(c->to, c->from, c->bytes);
}

static CUresult enqueue_copy(struct stream *s, void *to, const void *from, size_t bytes) {
	NEED_CONTEXT;
	stream_enqueue(s, copy, &(struct copy){to, from, bytes}, sizeof(struct copy));
	return 0;
}

CUresult cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t n, struct stream *s) { return enqueue_copy(s, HOST(to), from, n); }
CUresult cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, struct stream *s) { return enqueue_copy(s, to, HOST(from), n); }
CUresult cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, struct stream *s) { return enqueue_copy(s, HOST(to), HOST(from), n); }

struct fill {
	void *to;
	size_t bytes;
	unsigned char value;
};

static void fill(void *of) {
	struct fill *f = of;
	if (device_error() == 0) memset(f->to, f->value, f->bytes);
}

CUresult cuMemsetD8Async(unsigned long long to, unsigned char value, size_t n, struct stream *s) {
	NEED_CONTEXT;
	stream_enqueue(s, fill, &(struct fill){HOST(to), n, value}, sizeof(struct fill));
	return 0;
}

CUresult cuEventCreate(struct event **out, unsigned flags) {
	NEED_CONTEXT;
	if (flags != 0) return CUDA_INVALID_VALUE;
	*out = calloc(1, sizeof **out);
	return 0;
}

// With the lock held.
static void let_go(struct moment *m) {
	if (m != NULL && --m->holders == 0) free(m);
}

CUresult cuEventDestroy_v2(struct event *e) {
	pthread_mutex_lock(&moment_lock);
	let_go(e->last);
	pthread_mutex_unlock(&moment_lock);
	free(e);
	return 0;
}

static void reach(void *of) {
	struct moment *m = *(struct moment **)of;
	pthread_mutex_lock(&moment_lock);
	clock_gettime(CLOCK_MONOTONIC, &m->at);
	m->reached = 1;
	let_go(m);
	pthread_cond_broadcast(&moment_changed);
	pthread_mutex_unlock(&moment_lock);
}

CUresult cuEventRecord(struct event *e, struct stream *s) {
	NEED_CONTEXT;
	e->in = s->into != NULL ? s : NULL;
	e->after = s->captured;
	if (e->in != NULL) return 0; // the event has no time: it only says what waits for what
	struct moment *m = calloc(1, sizeof *m);
	m->holders = 2; // the event and the task
	pthread_mutex_lock(&moment_lock);
	let_go(e->last);
	e->last = m;
	pthread_mutex_unlock(&moment_lock);
	stream_enqueue(s, reach, &m, sizeof m);
	return 0;
}

static void await(void *of) {
	struct moment *m = *(struct moment **)of;
	pthread_mutex_lock(&moment_lock);
	while (!m->reached && device_error() == 0) pthread_cond_wait(&moment_changed, &moment_lock);
	let_go(m);
	pthread_mutex_unlock(&moment_lock);
}

// A stream that waits for what is captured is captured as well. The double knows
// what a graph's own stream waits for itself, not by way of a third stream.
static CUresult wait_captured(struct stream *s, struct event *e) {
	struct graph *g = e->in->into;
	if (g == NULL) return CUDA_CAPTURED_EVENT; // of a graph that is complete
	if (s->into == NULL) {
		s->into = g;
		s->captured = s->joined = 0;
		s->next_inside = g->streams;
		g->streams = s;
	}
	if (s->into != g) return CUDA_CAPTURE_ISOLATION;
	if (s->next_inside == NULL) e->in->joined = e->after;
	return 0;
}

CUresult cuStreamWaitEvent(struct stream *s, struct event *e, unsigned flags) {
	NEED_CONTEXT;
	if (flags != 0) return CUDA_INVALID_VALUE;
	if (e->in != NULL) return wait_captured(s, e);
	if (s->into != NULL && e->last != NULL) {
		s->into->spoilt = 1;
		return CUDA_CAPTURE_ISOLATION;
	}
	pthread_mutex_lock(&moment_lock);
	struct moment *m = e->last;
	if (m != NULL) m->holders++;
	pthread_mutex_unlock(&moment_lock);
	if (m != NULL) stream_enqueue(s, await, &m, sizeof m);
	return 0;
}

CUresult cuEventQuery(struct event *e) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	if (e->in != NULL) return CUDA_CAPTURED_EVENT;
	pthread_mutex_lock(&moment_lock);
	int reached = e->last == NULL || e->last->reached;
	pthread_mutex_unlock(&moment_lock);
	return reached ? 0 : CUDA_NOT_READY;
}

CUresult cuEventElapsedTime(float *ms, struct event *a, struct event *b) {
	NEED_CONTEXT;
	if (a->in != NULL || b->in != NULL) return CUDA_CAPTURED_EVENT;
	if (a->last == NULL || b->last == NULL) return CUDA_INVALID_HANDLE;
	pthread_mutex_lock(&moment_lock);
	int reached = a->last->reached && b->last->reached;
	if (reached) *ms = (float)((double)(b->last->at.tv_sec - a->last->at.tv_sec) * 1e3 + (double)(b->last->at.tv_nsec - a->last->at.tv_nsec) / 1e6);
	pthread_mutex_unlock(&moment_lock);
	return reached ? 0 : CUDA_NOT_READY;
}

CUresult cuStreamBeginCapture_v2(struct stream *s, int mode) {
	NEED_CONTEXT;
	if (mode != 1 || s->into != NULL || capture != NULL) return CUDA_INVALID_VALUE;
	capture = calloc(1, sizeof *capture);
	capture->last = &capture->first;
	capture->streams = s;
	s->into = capture;
	s->next_inside = NULL;
	s->captured = s->joined = 0;
	return 0;
}

CUresult cuGraphDestroy(struct graph *g) {
	for (struct task *t = g->first, *next; t != NULL; t = next) {
		next = t->next;
		free(t);
	}
	free(g);
	return 0;
}

CUresult cuStreamEndCapture(struct stream *s, struct graph **out) {
	NEED_CONTEXT;
	*out = NULL;
	if (s->into == NULL) return CUDA_INVALID_VALUE;
	if (s->next_inside != NULL || s->into != capture) return CUDA_CAPTURE_UNMATCHED;
	struct graph *g = capture;
	capture = NULL;
	CUresult r = g->spoilt ? CUDA_CAPTURE_INVALIDATED : 0;
	for (struct stream *i = g->streams; i != NULL; i = i->next_inside) {
		i->into = NULL;
		if (i != s && i->joined < i->captured && r == 0) r = CUDA_CAPTURE_UNJOINED;
	}
	if (r != 0)
		cuGraphDestroy(g);
	else
		*out = g;
	return r;
}

static void append(struct graph *g, const struct task *t) {
	struct task *copy = malloc(sizeof *copy + t->bytes);
	memcpy(copy, t, sizeof *copy + t->bytes);
	copy->next = NULL;
	*g->last = copy;
	g->last = &copy->next;
}

// An executable graph is a copy.
CUresult cuGraphInstantiateWithFlags(struct graph **out, struct graph *g, unsigned long long flags) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	if (flags != 0) return CUDA_INVALID_VALUE;
	*out = calloc(1, sizeof **out);
	(*out)->last = &(*out)->first;
	for (struct task *t = g->first; t != NULL; t = t->next) append(*out, t);
	return 0;
}

CUresult cuGraphExecDestroy(struct graph *g) { return cuGraphDestroy(g); }

static atomic_long graph_launches;

CUresult cuGraphLaunch(struct graph *g, struct stream *s) {
	NEED_CONTEXT;
	if (s->into != NULL) return CUDA_CAPTURE_UNSUPPORTED;
	if (atomic_fetch_add(&graph_launches, 1) + 1 == setting("CUDA_DOUBLE_GRAPH_ERROR", 0)) return CUDA_LAUNCH_OUT_OF_RESOURCES;
	for (struct task *t = g->first; t != NULL; t = t->next) stream_enqueue(s, t->work, t->of, t->bytes);
	return 0;
}
