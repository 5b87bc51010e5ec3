// As much of onnxruntime's C API as running a model takes, as its onnxruntime_c_api.h
// declares it. The API is a table of functions that only ever grows at its end, so that
// its first version is the beginning of every later one; what is not used here is
// skipped.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct OrtStatus OrtStatus; // NULL: no error
typedef struct OrtEnv OrtEnv;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtValue OrtValue;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtTensorInfo OrtTensorInfo; // OrtTensorTypeAndShapeInfo
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtAllocator OrtAllocator;

enum { ort_version = 1, ort_log_error = 3, ort_device_allocator = 0, ort_memory_default = 0 };

typedef struct OrtApi {
	void *skip0[2];
	const char *(*GetErrorMessage)(const OrtStatus *);
	OrtStatus *(*CreateEnv)(int level, const char *name, OrtEnv **);
	void *skip4[3];
	OrtStatus *(*CreateSession)(const OrtEnv *, const char *path, const OrtSessionOptions *, OrtSession **);
	void *skip8;
	OrtStatus *(*Run)(OrtSession *, const OrtRunOptions *, const char *const *names, const OrtValue *const *inputs, size_t, const char *const *output_names, size_t, OrtValue **outputs);
	OrtStatus *(*CreateSessionOptions)(OrtSessionOptions **);
	void *skip11[13];
	OrtStatus *(*SetIntraOpNumThreads)(OrtSessionOptions *, int);
	OrtStatus *(*SetInterOpNumThreads)(OrtSessionOptions *, int);
	void *skip26[4];
	OrtStatus *(*SessionGetInputCount)(const OrtSession *, size_t *);
	OrtStatus *(*SessionGetOutputCount)(const OrtSession *, size_t *);
	void *skip32;
	OrtStatus *(*SessionGetInputTypeInfo)(const OrtSession *, size_t, OrtTypeInfo **);
	OrtStatus *(*SessionGetOutputTypeInfo)(const OrtSession *, size_t, OrtTypeInfo **);
	void *skip35;
	OrtStatus *(*SessionGetInputName)(const OrtSession *, size_t, OrtAllocator *, char **);
	OrtStatus *(*SessionGetOutputName)(const OrtSession *, size_t, OrtAllocator *, char **);
	void *skip38[11];
	OrtStatus *(*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo *, void *, size_t bytes, const int64_t *shape, size_t dimensions, int type, OrtValue **);
	OrtStatus *(*IsTensor)(const OrtValue *, int *);
	OrtStatus *(*GetTensorMutableData)(OrtValue *, void **);
	void *skip52[3];
	OrtStatus *(*CastTypeInfoToTensorInfo)(const OrtTypeInfo *, const OrtTensorInfo **); // NULL: no tensor
	void *skip56[4];
	OrtStatus *(*GetTensorElementType)(const OrtTensorInfo *, int *);
	OrtStatus *(*GetDimensionsCount)(const OrtTensorInfo *, size_t *);
	OrtStatus *(*GetDimensions)(const OrtTensorInfo *, int64_t *, size_t);
	void *skip63[2];
	OrtStatus *(*GetTensorTypeAndShape)(const OrtValue *, OrtTensorInfo **);
	void *skip66[3];
	OrtStatus *(*CreateCpuMemoryInfo)(int allocator, int memory, OrtMemoryInfo **);
	void *skip70[6];
	OrtStatus *(*AllocatorFree)(OrtAllocator *, void *);
	void *skip77;
	OrtStatus *(*GetAllocatorWithDefaultOptions)(OrtAllocator **); // not to be freed
	void *skip79[14];
	void (*ReleaseStatus)(OrtStatus *);
	void (*ReleaseMemoryInfo)(OrtMemoryInfo *);
	void (*ReleaseSession)(OrtSession *);
	void (*ReleaseValue)(OrtValue *);
	void *skip97;
	void (*ReleaseTypeInfo)(OrtTypeInfo *);
	void (*ReleaseTensorInfo)(OrtTensorInfo *);
	void (*ReleaseSessionOptions)(OrtSessionOptions *);
} OrtApi;

#define ORT_AT(name, index) _Static_assert(offsetof(OrtApi, name) == (index) * sizeof(void *), #name)
ORT_AT(Run, 9);
ORT_AT(SetIntraOpNumThreads, 24);
ORT_AT(SessionGetInputCount, 30);
ORT_AT(SessionGetInputName, 36);
ORT_AT(CreateTensorWithDataAsOrtValue, 49);
ORT_AT(CastTypeInfoToTensorInfo, 55);
ORT_AT(GetTensorElementType, 60);
ORT_AT(GetTensorTypeAndShape, 65);
ORT_AT(CreateCpuMemoryInfo, 69);
ORT_AT(AllocatorFree, 76);
ORT_AT(GetAllocatorWithDefaultOptions, 78);
ORT_AT(ReleaseStatus, 93);
ORT_AT(ReleaseSessionOptions, 100);

typedef struct OrtApiBase {
	const OrtApi *(*GetApi)(uint32_t version);
	const char *(*GetVersionString)(void);
} OrtApiBase;

struct ort_library {
	const OrtApiBase *(*OrtGetApiBase)(void);
	const OrtApi *api;
	OrtEnv *env;
	OrtAllocator *allocator;
	OrtMemoryInfo *memory;
};

// Each function below is one crossing from Go; a status that is not NULL is an error,
// to be read with ort_message and released with ort_release.

static inline const char *ort_version_string(struct ort_library *l) { return l->OrtGetApiBase()->GetVersionString(); }

static inline int ort_begin(struct ort_library *l) {
	l->api = l->OrtGetApiBase()->GetApi(ort_version);
	return l->api != NULL;
}

static inline OrtStatus *ort_environment(struct ort_library *l) {
	OrtStatus *s = l->api->CreateEnv(ort_log_error, "scalebench", &l->env);
	if (s == NULL) {
		s = l->api->GetAllocatorWithDefaultOptions(&l->allocator);
	}
	if (s == NULL) {
		s = l->api->CreateCpuMemoryInfo(ort_device_allocator, ort_memory_default, &l->memory);
	}
	return s;
}

static inline const char *ort_message(struct ort_library *l, OrtStatus *s) { return l->api->GetErrorMessage(s); }
static inline void ort_release(struct ort_library *l, OrtStatus *s) { l->api->ReleaseStatus(s); }

static inline OrtStatus *ort_open(struct ort_library *l, const char *path, int threads, OrtSession **session, size_t *inputs, size_t *outputs) {
	OrtSessionOptions *options = NULL;
	OrtStatus *s = l->api->CreateSessionOptions(&options);
	if (s != NULL) {
		return s;
	}
	s = l->api->SetIntraOpNumThreads(options, threads);
	if (s == NULL) {
		s = l->api->SetInterOpNumThreads(options, 1);
	}
	if (s == NULL) {
		s = l->api->CreateSession(l->env, path, options, session);
	}
	l->api->ReleaseSessionOptions(options);
	if (s == NULL) {
		s = l->api->SessionGetInputCount(*session, inputs);
	}
	if (s == NULL) {
		s = l->api->SessionGetOutputCount(*session, outputs);
	}
	return s;
}

static inline void ort_close(struct ort_library *l, OrtSession *session) { l->api->ReleaseSession(session); }

// The name of an input or output is to be given back with ort_free.
static inline OrtStatus *ort_name(struct ort_library *l, const OrtSession *session, int output, size_t i, char **name) {
	return (output ? l->api->SessionGetOutputName : l->api->SessionGetInputName)(session, i, l->allocator, name);
}

static inline void ort_free(struct ort_library *l, void *memory) { (void)l->api->AllocatorFree(l->allocator, memory); }

// ort_most is how many dimensions a tensor may have here.
enum { ort_most = 16 };

struct ort_tensor {
	int type; // 0: no tensor
	size_t dimensions;
	int64_t shape[ort_most];
	void *data;
};

static inline OrtStatus *ort_describe(struct ort_library *l, const OrtTensorInfo *info, struct ort_tensor *t) {
	OrtStatus *s = l->api->GetTensorElementType(info, &t->type);
	if (s == NULL) {
		s = l->api->GetDimensionsCount(info, &t->dimensions);
	}
	if (s == NULL && t->dimensions <= ort_most) {
		s = l->api->GetDimensions(info, t->shape, t->dimensions);
	}
	return s;
}

static inline OrtStatus *ort_port(struct ort_library *l, const OrtSession *session, int output, size_t i, struct ort_tensor *t) {
	OrtTypeInfo *type = NULL;
	OrtStatus *s = (output ? l->api->SessionGetOutputTypeInfo : l->api->SessionGetInputTypeInfo)(session, i, &type);
	if (s != NULL) {
		return s;
	}
	const OrtTensorInfo *info = NULL; // part of type
	s = l->api->CastTypeInfoToTensorInfo(type, &info);
	t->type = 0;
	if (s == NULL && info != NULL) {
		s = ort_describe(l, info, t);
	}
	l->api->ReleaseTypeInfo(type);
	return s;
}

static inline OrtStatus *ort_value(struct ort_library *l, void *data, size_t bytes, const int64_t *shape, size_t dimensions, int type, OrtValue **value) {
	return l->api->CreateTensorWithDataAsOrtValue(l->memory, data, bytes, shape, dimensions, type, value);
}

static inline void ort_release_value(struct ort_library *l, OrtValue *value) {
	if (value != NULL) {
		l->api->ReleaseValue(value);
	}
}

// ort_run computes, and says where the outputs are. What the outputs were before is
// released first.
static inline OrtStatus *ort_run(struct ort_library *l, OrtSession *session, const char *const *names, OrtValue *const *inputs, size_t n,
                                 const char *const *output_names, OrtValue **outputs, struct ort_tensor *tensors, size_t m) {
	for (size_t i = 0; i < m; i++) {
		ort_release_value(l, outputs[i]);
		outputs[i] = NULL;
	}
	OrtStatus *s = l->api->Run(session, NULL, names, (const OrtValue *const *)inputs, n, output_names, m, outputs);
	for (size_t i = 0; s == NULL && i < m; i++) {
		int is_tensor = 0;
		OrtTensorInfo *info = NULL;
		tensors[i].type = 0;
		s = l->api->IsTensor(outputs[i], &is_tensor);
		if (s != NULL || !is_tensor) {
			continue;
		}
		s = l->api->GetTensorTypeAndShape(outputs[i], &info);
		if (s != NULL) {
			continue;
		}
		s = ort_describe(l, info, &tensors[i]);
		l->api->ReleaseTensorInfo(info);
		if (s == NULL) {
			s = l->api->GetTensorMutableData(outputs[i], &tensors[i].data);
		}
	}
	return s;
}
