// NCCL's part: the ranks are processes that share a segment of memory.
#define _GNU_SOURCE
#include "double.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

typedef int ncclResult_t;
typedef struct {
	char internal[128];
} ncclUniqueId;

typedef struct {
	size_t size;
	unsigned magic, version;
	int blocking, cgaClusterSize, minCTAs, maxCTAs;
	const char *netName;
	int splitShare, trafficClass;
} ncclConfig;

// A library that brings this symbol along is the double.
const char scalebenchDouble[] = "DOUBLE of NCCL (not NCCL, not a GPU)";

enum { MOST_RANKS = 16, SLOT = 256 << 10 };

enum kind { ALL_REDUCE, BROADCAST, REDUCE_SCATTER, ALL_GATHER };

// What an operation is, which all ranks must agree on.
struct description {
	int kind, type, reduction, root;
	size_t count;
};

struct segment {
	atomic_int joined, count;
	atomic_uint phase;
	int device[MOST_RANKS];
	char host[MOST_RANKS][64];
	struct description operation[MOST_RANKS];
	unsigned char slot[MOST_RANKS][SLOT];
};

struct ncclComm {
	struct segment *shared;
	char name[64];
	int rank, size, device;
	pthread_t joining;
	atomic_int state, abort, outstanding, settling;
	long sequence;
};
typedef struct ncclComm *ncclComm_t;

static _Thread_local char last_error[256];

static ncclResult_t refuse(ncclResult_t r, const char *why) {
	snprintf(last_error, sizeof last_error, "%s", why);
	return r;
}

const char *ncclGetLastError(ncclComm_t c) {
	(void)c;
	return last_error[0] != 0 ? last_error : NULL;
}

const char *ncclGetErrorString(ncclResult_t r) {
	static const char *const words[] = {"no error", "unhandled cuda error", "unhandled system error", "internal error", "invalid argument", "invalid usage", "remote process exited or there was a network error", "NCCL operation in progress"};
	return r >= 0 && r <= IN_PROGRESS ? words[r] : "unknown result code";
}

ncclResult_t ncclGetVersion(int *v) {
	*v = (int)setting("NCCL_DOUBLE_VERSION", 22800);
	return SUCCESS;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
	unsigned char random[8];
	if (getrandom(random, sizeof random, 0) != sizeof random) return refuse(SYSTEM, "no random numbers");
	memset(id, 0, sizeof *id);
	int n = snprintf(id->internal, sizeof id->internal, "/nccl-double-");
	for (size_t i = 0; i < sizeof random; i++) n += snprintf(id->internal + n, sizeof id->internal - (size_t)n, "%02x", random[i]);
	// To its end: an identifier that lost a byte on its way is noticed.
	memset(id->internal + 64, 0x5a, 64);
	int f = shm_open(id->internal, O_CREAT | O_EXCL | O_RDWR, 0600);
	if (f < 0 || ftruncate(f, sizeof(struct segment)) != 0) return refuse(SYSTEM, "no shared memory");
	close(f);
	return SUCCESS;
}

// pass returns when all ranks are here, or with 0 after an abort.
static int pass(ncclComm_t c) {
	struct segment *s = c->shared;
	unsigned phase = atomic_load(&s->phase);
	if (atomic_fetch_add(&s->count, 1) + 1 == c->size) {
		atomic_store(&s->count, 0);
		atomic_fetch_add(&s->phase, 1);
		return 1;
	}
	for (int spins = 0; atomic_load(&s->phase) == phase; spins++) {
		if (atomic_load(&c->abort)) return 0;
		if (spins > 200) usleep(50);
	}
	return 1;
}

// Two ranks on one GPU are refused unless they are told apart, as NCCL does it.
static int duplicate(ncclComm_t c) {
	int version;
	ncclGetVersion(&version);
	if (version >= 23000 && setting("NCCL_MULTI_RANK_GPU_ENABLE", 0) == 1) return 0;
	struct segment *s = c->shared;
	for (int r = 0; r < c->size; r++)
		if (r != c->rank && s->device[r] == s->device[c->rank] && strcmp(s->host[r], s->host[c->rank]) == 0) return 1;
	return 0;
}

static void *join(void *of) {
	ncclComm_t c = of;
	struct segment *s = c->shared;
	const char *host = getenv("NCCL_HOSTID");
	snprintf(s->host[c->rank], sizeof s->host[0], "%s", host != NULL ? host : "");
	s->device[c->rank] = c->device;
	atomic_fetch_add(&s->joined, 1);
	while (atomic_load(&s->joined) < c->size) {
		if (atomic_load(&c->abort)) return NULL;
		usleep(200);
	}
	shm_unlink(c->name); // the last word on it; the mappings stay
	atomic_store(&c->state, duplicate(c) ? INVALID_USAGE : SUCCESS);
	return NULL;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank, ncclConfig *config) {
	if (current_device() < 0) return refuse(UNHANDLED_CUDA, "no device is current on this thread");
	if (config->size != sizeof *config || config->magic != 0xcafebeef || config->version != 21800 || config->blocking != 0 || config->trafficClass != -2147483647 - 1)
		return refuse(INVALID_ARGUMENT, "this is not the configuration that is known");
	if (size < 1 || size > MOST_RANKS || rank < 0 || rank >= size) return refuse(INVALID_ARGUMENT, "no such rank");
	for (int i = 64; i < 128; i++)
		if (id.internal[i] != 0x5a) return refuse(INVALID_ARGUMENT, "the identifier is damaged");
	int f = shm_open(id.internal, O_RDWR, 0600);
	if (f < 0) return refuse(SYSTEM, "the identifier is of nobody here");
	ncclComm_t c = calloc(1, sizeof *c);
	c->shared = mmap(NULL, sizeof *c->shared, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
	close(f);
	if (c->shared == MAP_FAILED) {
		free(c);
		return refuse(SYSTEM, "no shared memory");
	}
	snprintf(c->name, sizeof c->name, "%.63s", id.internal);
	c->rank = rank;
	c->size = size;
	c->device = current_device();
	atomic_store(&c->state, IN_PROGRESS);
	pthread_create(&c->joining, NULL, join, c);
	*out = c;
	return IN_PROGRESS;
}

// The fake does not support blocking communicators.
ncclResult_t ncclCommInitRank(ncclComm_t *out, int size, ncclUniqueId id, int rank) {
	(void)out, (void)size, (void)id, (void)rank;
	return refuse(INVALID_USAGE, "the double has no communicators that block");
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state) {
	*state = atomic_load(&c->state);
	if (*state == SUCCESS && atomic_load(&c->settling) > 0) {
		atomic_fetch_sub(&c->settling, 1);
		*state = IN_PROGRESS;
	}
	return SUCCESS;
}

ncclResult_t ncclCommCount(ncclComm_t c, int *n) {
	*n = c->size;
	return SUCCESS;
}

ncclResult_t ncclCommUserRank(ncclComm_t c, int *n) {
	*n = c->rank;
	return SUCCESS;
}

static ncclResult_t forget(ncclComm_t c) {
	pthread_join(c->joining, NULL);
	while (atomic_load(&c->outstanding) > 0) usleep(50);
	munmap(c->shared, sizeof *c->shared);
	free(c);
	return SUCCESS;
}

ncclResult_t ncclCommAbort(ncclComm_t c) {
	atomic_store(&c->abort, 1);
	shm_unlink(c->name);
	return forget(c);
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
	atomic_store(&c->settling, 2);
	return IN_PROGRESS;
}

ncclResult_t ncclCommDestroy(ncclComm_t c) { return forget(c); }

struct operation {
	ncclComm_t comm;
	struct description d;
	const unsigned char *send;
	unsigned char *recv;
	long sequence;
};

// The part of each kind, of n elements from element `from` on, which fits a
// slot; block is whose share is reduced, in a reduce-scatter. 0 after an abort.
static int part(struct operation *o, size_t from, size_t n, int block) {
	ncclComm_t c = o->comm;
	struct description *d = &o->d;
	size_t size = size_of(d->type);
	unsigned char *slots[MOST_RANKS];
	for (int r = 0; r < c->size; r++) slots[r] = c->shared->slot[r];
	size_t at = ((size_t)block * d->count + from) * size, here = from * size;
	if (d->kind != BROADCAST || c->rank == d->root) memcpy(slots[c->rank], o->send + at, n * size);
	if (!pass(c)) return 0;
	switch (d->kind) {
	case ALL_REDUCE: reduce(o->recv + here, slots, c->size, n, d->type, d->reduction); break;
	case BROADCAST: memcpy(o->recv + here, slots[d->root], n * size); break;
	case REDUCE_SCATTER:
		if (block == c->rank) reduce(o->recv + here, slots, c->size, n, d->type, d->reduction);
		break;
	case ALL_GATHER:
		for (int r = 0; r < c->size; r++) memcpy(o->recv + ((size_t)r * d->count + from) * size, slots[r], n * size);
	}
	return pass(c);
}

static void run(void *of) {
	struct operation *o = of;
	ncclComm_t c = o->comm;
	struct segment *s = c->shared;
	size_t size = size_of(o->d.type), most = SLOT / size;
	int blocks = o->d.kind == REDUCE_SCATTER ? c->size : 1;
	usleep((useconds_t)setting("NCCL_DOUBLE_DELAY_US", 0));
	if (device_error() != 0) goto end;
	while (o->sequence == setting("NCCL_DOUBLE_HANG", 0) && !atomic_load(&c->abort)) usleep(1000);
	if (o->sequence == setting("NCCL_DOUBLE_ERROR", 0)) {
		atomic_store(&c->state, REMOTE);
		goto end;
	}
	s->operation[c->rank] = o->d;
	if (!pass(c)) goto end;
	for (int r = 0; r < c->size; r++)
		if (memcmp(&s->operation[r], &o->d, sizeof o->d) != 0) {
			atomic_store(&c->state, INVALID_USAGE); // real NCCL would hang, or mix the data up
			goto end;
		}
	if (!pass(c)) goto end;
	for (int b = 0; b < blocks; b++)
		for (size_t from = 0; from < o->d.count; from += most)
			if (!part(o, from, o->d.count - from < most ? o->d.count - from : most, b)) goto end;
	if (o->sequence == setting("NCCL_DOUBLE_CORRUPT", 0) && o->d.count > 0) o->recv[(o->d.count - 1) * size] ^= 1;
end:
	atomic_fetch_sub(&c->outstanding, 1);
}

// Groups belong to a thread. In a group an operation is only taken note of.
static _Thread_local int depth;
static _Thread_local ncclComm_t grouped;

static ncclResult_t issue(int kind, const void *send, void *recv, size_t count, int type, int reduction, int root, ncclComm_t c, struct stream *s) {
	static const char *const names[] = {"ncclAllReduce", "ncclBroadcast", "ncclReduceScatter", "ncclAllGather"};
	write_down(names[kind], s, NULL);
	if (current_device() != c->device) return refuse(UNHANDLED_CUDA, "another device is current on this thread, or none");
	if (type < 0 || type >= TYPES) return refuse(INVALID_ARGUMENT, "this type is none of the double's");
	if (reduction < 0 || reduction >= REDUCTIONS || root < 0 || root >= c->size) return refuse(INVALID_ARGUMENT, "no such reduction or root");
	if (s == NULL) return refuse(INVALID_ARGUMENT, "the double has no null stream");
	if (stream_captures(s)) return refuse(INVALID_USAGE, "the double's collectives cannot be captured");
	if (atomic_load(&c->settling) > 0 || atomic_load(&c->state) == IN_PROGRESS) return refuse(INVALID_USAGE, "the communicator is still busy with an earlier call");
	struct operation operation, *o = &operation;
	memset(o, 0, sizeof *o); // with its gaps: descriptions are compared as bytes
	o->comm = c;
	o->d.kind = kind;
	o->d.type = type;
	o->d.reduction = reduction;
	o->d.root = root;
	o->d.count = count;
	o->send = HOST(send);
	o->recv = HOST(recv);
	o->sequence = ++c->sequence;
	atomic_fetch_add(&c->outstanding, 1);
	stream_enqueue(s, run, o, sizeof *o);
	if (depth > 0) {
		grouped = c;
		return IN_PROGRESS;
	}
	atomic_store(&c->settling, 1);
	return IN_PROGRESS;
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t n, int type, int reduction, ncclComm_t c, struct stream *s) { return issue(ALL_REDUCE, send, recv, n, type, reduction, 0, c, s); }
ncclResult_t ncclBroadcast(const void *send, void *recv, size_t n, int type, int root, ncclComm_t c, struct stream *s) { return issue(BROADCAST, send, recv, n, type, 0, root, c, s); }
ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t n, int type, int reduction, ncclComm_t c, struct stream *s) { return issue(REDUCE_SCATTER, send, recv, n, type, reduction, 0, c, s); }
ncclResult_t ncclAllGather(const void *send, void *recv, size_t n, int type, ncclComm_t c, struct stream *s) { return issue(ALL_GATHER, send, recv, n, type, 0, 0, c, s); }

ncclResult_t ncclGroupStart(void) {
	depth++;
	return SUCCESS;
}

ncclResult_t ncclGroupEnd(void) {
	if (depth == 0) return refuse(INVALID_USAGE, "no group was started");
	if (--depth > 0 || grouped == NULL) return SUCCESS;
	atomic_store(&grouped->settling, 2);
	grouped = NULL;
	return IN_PROGRESS;
}
