// NCCL's functions and types as its header declares them, unchanged from 2.3.5
// to 2.30, and a function around each pointer, since Go cannot call through one.
#pragma once
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	char internal[128];
} ncclUniqueId;
typedef struct ncclComm *ncclComm_t;
typedef int ncclResult_t;
typedef int ncclDataType_t;
typedef int ncclRedOp_t;
typedef void *cudaStream_t;

// The first 48 bytes of ncclConfig_t, as version 2.18.1 had it; its size field
// tells later versions so. 2.26.2 reads what was padding then, all the same, as
// trafficClass: the field has to say "not set".
typedef struct {
	size_t size;
	unsigned magic;
	unsigned version;
	int blocking;
	int cgaClusterSize;
	int minCTAs;
	int maxCTAs;
	const char *netName;
	int splitShare;
	int trafficClass;
} nccl_config;

enum { nccl_config_magic = 0xcafebeef, nccl_config_version = 21800, nccl_in_progress = 7 };

_Static_assert(sizeof(ncclUniqueId) == 128, "the identifier is passed by value");
_Static_assert(sizeof(nccl_config) == 48, "the prefix of ncclConfig_t");
_Static_assert(offsetof(nccl_config, magic) == 8 && offsetof(nccl_config, version) == 12, "");
_Static_assert(offsetof(nccl_config, blocking) == 16 && offsetof(nccl_config, cgaClusterSize) == 20, "");
_Static_assert(offsetof(nccl_config, minCTAs) == 24 && offsetof(nccl_config, maxCTAs) == 28, "");
_Static_assert(offsetof(nccl_config, netName) == 32 && offsetof(nccl_config, splitShare) == 40, "");
_Static_assert(offsetof(nccl_config, trafficClass) == 44, "");

struct nccl_table {
	ncclResult_t (*GetVersion)(int *);
	ncclResult_t (*GetUniqueId)(ncclUniqueId *);
	ncclResult_t (*CommInitRank)(ncclComm_t *, int, ncclUniqueId, int);
	ncclResult_t (*CommDestroy)(ncclComm_t);
	ncclResult_t (*CommAbort)(ncclComm_t);
	ncclResult_t (*CommGetAsyncError)(ncclComm_t, ncclResult_t *);
	ncclResult_t (*CommCount)(ncclComm_t, int *);
	ncclResult_t (*CommUserRank)(ncclComm_t, int *);
	const char *(*GetErrorString)(ncclResult_t);
	ncclResult_t (*AllReduce)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
	ncclResult_t (*Broadcast)(const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
	ncclResult_t (*ReduceScatter)(const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t);
	ncclResult_t (*AllGather)(const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t);
	ncclResult_t (*GroupStart)(void);
	ncclResult_t (*GroupEnd)(void);
	const char *(*GetLastError)(ncclComm_t);                                                             // 2.13.4
	ncclResult_t (*CommInitRankConfig)(ncclComm_t *, int, ncclUniqueId, int, nccl_config *);              // 2.14.3
	ncclResult_t (*CommFinalize)(ncclComm_t);                                                            // 2.14.3
	void *double_notice; // only scalebench's test double has it
};

static inline ncclResult_t nccl_get_version(struct nccl_table *t, int *v) { return t->GetVersion(v); }
static inline const char *nccl_error_string(struct nccl_table *t, ncclResult_t r) { return t->GetErrorString(r); }
static inline const char *nccl_last_error(struct nccl_table *t, ncclComm_t c) { return t->GetLastError != NULL ? t->GetLastError(c) : NULL; }

static inline ncclResult_t nccl_unique_id(struct nccl_table *t, void *id) {
	ncclUniqueId u;
	ncclResult_t r = t->GetUniqueId(&u);
	memcpy(id, &u, sizeof u);
	return r;
}

struct nccl_settings {
	int min_ctas, max_ctas; // 0: NCCL's choice
	const char *net_name;   // NULL: NCCL's choice
};

static inline int nccl_or_unset(int v) { return v > 0 ? v : INT_MIN; }

// A communicator that does not block is returned at once, and joins the others
// behind the scenes.
static inline ncclResult_t nccl_init(struct nccl_table *t, ncclComm_t *comm, int size, const void *id, int rank, struct nccl_settings *s) {
	ncclUniqueId u;
	memcpy(&u, id, sizeof u);
	nccl_config c = {
		.size = sizeof c,
		.magic = nccl_config_magic,
		.version = nccl_config_version,
		.blocking = 0,
		.cgaClusterSize = INT_MIN,
		.minCTAs = nccl_or_unset(s->min_ctas),
		.maxCTAs = nccl_or_unset(s->max_ctas),
		.netName = s->net_name,
		.splitShare = INT_MIN,
		.trafficClass = INT_MIN,
	};
	return t->CommInitRankConfig(comm, size, u, rank, &c);
}

static inline ncclResult_t nccl_state(struct nccl_table *t, ncclComm_t c, ncclResult_t *state) { return t->CommGetAsyncError(c, state); }
static inline ncclResult_t nccl_count(struct nccl_table *t, ncclComm_t c, int *n) { return t->CommCount(c, n); }
static inline ncclResult_t nccl_rank(struct nccl_table *t, ncclComm_t c, int *n) { return t->CommUserRank(c, n); }
static inline ncclResult_t nccl_finalize(struct nccl_table *t, ncclComm_t c) { return t->CommFinalize(c); }
static inline ncclResult_t nccl_destroy(struct nccl_table *t, ncclComm_t c) { return t->CommDestroy(c); }
static inline ncclResult_t nccl_abort(struct nccl_table *t, ncclComm_t c) { return t->CommAbort(c); }

enum nccl_kind { nccl_all_reduce, nccl_broadcast, nccl_reduce_scatter, nccl_all_gather };

struct nccl_operation {
	int kind;
	int type;
	int reduction; // of all-reduce and reduce-scatter
	int root;      // of broadcast
	uintptr_t send, recv;
	size_t count;
};

static inline ncclResult_t nccl_issue(struct nccl_table *t, ncclComm_t c, uintptr_t stream, const struct nccl_operation *o) {
	const void *send = (const void *)o->send;
	void *recv = (void *)o->recv;
	switch (o->kind) {
	case nccl_all_reduce:
		return t->AllReduce(send, recv, o->count, o->type, o->reduction, c, (cudaStream_t)stream);
	case nccl_broadcast:
		return t->Broadcast(send, recv, o->count, o->type, o->root, c, (cudaStream_t)stream);
	case nccl_reduce_scatter:
		return t->ReduceScatter(send, recv, o->count, o->type, o->reduction, c, (cudaStream_t)stream);
	case nccl_all_gather:
		return t->AllGather(send, recv, o->count, o->type, c, (cudaStream_t)stream);
	}
	return 4; // ncclInvalidArgument
}

// Hands operations to the stream in one crossing from Go; several as one group,
// which NCCL launches together. A group that was started is always ended, or
// the thread's next calls would fall into it; the first failure is returned.
static inline ncclResult_t nccl_enqueue(struct nccl_table *t, ncclComm_t c, uintptr_t stream, const struct nccl_operation *o, int n, int *failed) {
	*failed = 0;
	if (n == 1) {
		return nccl_issue(t, c, stream, o);
	}
	ncclResult_t first = t->GroupStart();
	if (first != 0) {
		return first;
	}
	for (int i = 0; i < n && (first == 0 || first == nccl_in_progress); i++) {
		*failed = i;
		first = nccl_issue(t, c, stream, &o[i]);
	}
	ncclResult_t end = t->GroupEnd();
	return first == 0 || first == nccl_in_progress ? end : first;
}
