// The driver's part: device memory in the process's own, and streams as threads.
#include "double.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int CUresult;

struct task {
	void (*work)(void *);
	void *of;
	struct task *next;
};

struct stream {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct task *first, **last;
	int waiting, ending; // tasks that have not ended
};

struct event {
	pthread_mutex_t lock;
	int waiting; // records that have not been reached
	struct timespec at;
};

static int initialised;
static _Thread_local int current = -1;

int current_device(void) { return current; }

long setting(const char *name, long otherwise) {
	const char *s = getenv(name);
	return s != NULL && *s != 0 ? strtol(s, NULL, 10) : otherwise;
}

CUresult cuInit(unsigned flags) {
	if (setting("CUDA_DOUBLE_GPUS", 1) == 0) return 100; // CUDA_ERROR_NO_DEVICE
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
	case CUDA_NOT_INITIALIZED: *s = "initialization error"; return 0;
	case 100: *s = "no CUDA-capable device is detected"; return 0;
	case CUDA_INVALID_DEVICE: *s = "invalid device ordinal"; return 0;
	case CUDA_INVALID_CONTEXT: *s = "invalid device context"; return 0;
	case CUDA_NOT_READY: *s = "device not ready"; return 0;
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

#define NEED_CONTEXT \
	if (current < 0) return CUDA_INVALID_CONTEXT

CUresult cuMemAlloc_v2(unsigned long long *p, size_t bytes) {
	NEED_CONTEXT;
	void *memory;
	if (bytes == 0 || posix_memalign(&memory, 256, bytes) != 0) return CUDA_INVALID_VALUE;
	memset(memory, 0xa5, bytes); // nobody may count on zeros
	*p = (uintptr_t)memory + DEVICE;
	return 0;
}

CUresult cuMemFree_v2(unsigned long long p) {
	NEED_CONTEXT;
	free(HOST(p));
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
	return NULL;
}

CUresult cuStreamCreate(struct stream **out, unsigned flags) {
	NEED_CONTEXT;
	if (flags != 1) return CUDA_INVALID_VALUE;
	struct stream *s = calloc(1, sizeof *s);
	s->last = &s->first;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	pthread_create(&s->thread, NULL, serve, s);
	*out = s;
	return 0;
}

CUresult cuStreamDestroy_v2(struct stream *s) {
	NEED_CONTEXT;
	pthread_mutex_lock(&s->lock);
	s->ending = 1;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	free(s);
	return 0;
}

void stream_enqueue(struct stream *s, void (*work)(void *), void *of) {
	struct task *t = calloc(1, sizeof *t);
	t->work = work;
	t->of = of;
	pthread_mutex_lock(&s->lock);
	*s->last = t;
	s->last = &t->next;
	s->waiting++;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

CUresult cuStreamQuery(struct stream *s) {
	NEED_CONTEXT;
	pthread_mutex_lock(&s->lock);
	int waiting = s->waiting;
	pthread_mutex_unlock(&s->lock);
	return waiting > 0 ? CUDA_NOT_READY : 0;
}

CUresult cuStreamSynchronize(struct stream *s) {
	NEED_CONTEXT;
	pthread_mutex_lock(&s->lock);
	while (s->waiting > 0) pthread_cond_wait(&s->changed, &s->lock);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

struct copy {
	void *to;
	const void *from;
	size_t bytes;
};

static void copy(void *of) {
	struct copy *c = of;
	memcpy(c->to, c->from, c->bytes);
	free(c);
}

static CUresult enqueue_copy(struct stream *s, void *to, const void *from, size_t bytes) {
	NEED_CONTEXT;
	struct copy *c = malloc(sizeof *c);
	*c = (struct copy){to, from, bytes};
	stream_enqueue(s, copy, c);
	return 0;
}

CUresult cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t n, struct stream *s) { return enqueue_copy(s, HOST(to), from, n); }
CUresult cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, struct stream *s) { return enqueue_copy(s, to, HOST(from), n); }

CUresult cuEventCreate(struct event **out, unsigned flags) {
	NEED_CONTEXT;
	if (flags != 0) return CUDA_INVALID_VALUE;
	*out = calloc(1, sizeof **out);
	pthread_mutex_init(&(*out)->lock, NULL);
	return 0;
}

CUresult cuEventDestroy_v2(struct event *e) {
	free(e);
	return 0;
}

static void reach(void *of) {
	struct event *e = of;
	pthread_mutex_lock(&e->lock);
	clock_gettime(CLOCK_MONOTONIC, &e->at);
	e->waiting--;
	pthread_mutex_unlock(&e->lock);
}

CUresult cuEventRecord(struct event *e, struct stream *s) {
	NEED_CONTEXT;
	pthread_mutex_lock(&e->lock);
	e->waiting++;
	pthread_mutex_unlock(&e->lock);
	stream_enqueue(s, reach, e);
	return 0;
}

CUresult cuEventQuery(struct event *e) {
	pthread_mutex_lock(&e->lock);
	int waiting = e->waiting;
	pthread_mutex_unlock(&e->lock);
	return waiting > 0 ? CUDA_NOT_READY : 0;
}

CUresult cuEventElapsedTime(float *ms, struct event *a, struct event *b) {
	if (cuEventQuery(a) != 0 || cuEventQuery(b) != 0) return CUDA_NOT_READY;
	*ms = (float)((double)(b->at.tv_sec - a->at.tv_sec) * 1e3 + (double)(b->at.tv_nsec - a->at.tv_nsec) / 1e6);
	return 0;
}
