// The driver's part that is about streams, which are threads, events and graphs.
#include "double.h"
#include <pthread.h>
#include <stdatomic.h>
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
	int number; // from 1, in the order in which they were made
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

int stream_number(const struct stream *s) { return s->number; }

void device_fail(CUresult r) {
	set_device_error(r);
	pthread_mutex_lock(&moment_lock);
	pthread_cond_broadcast(&moment_changed);
	pthread_mutex_unlock(&moment_lock);
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
	static int streams;
	pthread_mutex_lock(&all_lock);
	s->number = ++streams;
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
	NEED_CONTEXT_ON(s, NULL);
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

void wait_for_device(void) {
	pthread_mutex_lock(&all_lock);
	for (struct stream *s = all; s != NULL; s = s->next) idle(s);
	pthread_mutex_unlock(&all_lock);
}

CUresult cuStreamQuery(struct stream *s) {
	NEED_CONTEXT_ON(s, NULL);
	NEED_NO_CAPTURE;
	pthread_mutex_lock(&s->lock);
	int waiting = s->waiting;
	pthread_mutex_unlock(&s->lock);
	return waiting > 0 ? CUDA_NOT_READY : 0;
}

CUresult cuStreamSynchronize(struct stream *s) {
	NEED_CONTEXT_ON(s, NULL);
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
	stream_enqueue(s, copy, &(struct copy){to, from, bytes}, sizeof(struct copy));
	return 0;
}

CUresult cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t n, struct stream *s) {
	NEED_CONTEXT_ON(s, NULL);
	return enqueue_copy(s, HOST(to), from, n);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n, struct stream *s) {
	NEED_CONTEXT_ON(s, NULL);
	return enqueue_copy(s, to, HOST(from), n);
}

CUresult cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, struct stream *s) {
	NEED_CONTEXT_ON(s, NULL);
	return enqueue_copy(s, HOST(to), HOST(from), n);
}

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
	NEED_CONTEXT_ON(s, NULL);
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
	write_down(__func__, NULL, e);
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
	NEED_CONTEXT_ON(s, e);
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
	NEED_CONTEXT_ON(s, e);
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
	NEED_CONTEXT_ON(NULL, e);
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
	NEED_CONTEXT_ON(s, NULL);
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
	NEED_CONTEXT_ON(s, NULL);
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
	NEED_CONTEXT_ON(s, NULL);
	if (s->into != NULL) return CUDA_CAPTURE_UNSUPPORTED;
	if (atomic_fetch_add(&graph_launches, 1) + 1 == setting("CUDA_DOUBLE_GRAPH_ERROR", 0)) return CUDA_LAUNCH_OUT_OF_RESOURCES;
	for (struct task *t = g->first; t != NULL; t = t->next) stream_enqueue(s, t->work, t->of, t->bytes);
	return 0;
}
