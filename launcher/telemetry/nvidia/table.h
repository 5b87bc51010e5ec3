// NVML's functions and types as its documentation declares them, unchanged since
// driver 418, and a function around each pointer, since Go cannot call through one.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef int nvmlReturn_t;
typedef struct nvmlDevice *nvmlDevice_t;

typedef struct {
	unsigned gpu, memory; // percent
} nvmlUtilization_t;

typedef struct {
	unsigned long long total, free, used; // bytes
} nvmlMemory_t;

typedef struct {
	unsigned long long referenceTime; // µs
	unsigned long long violationTime; // ns
} nvmlViolationTime_t;

// A value of nvmlDeviceGetFieldValues; each has a return code of its own.
typedef struct {
	unsigned fieldId;
	unsigned scopeId;
	long long timestamp;
	long long latencyUsec;
	int valueType;
	nvmlReturn_t nvmlReturn;
	union {
		double d;
		unsigned ui;
		unsigned long ul;
		unsigned long long ull;
		long long sll;
	} value;
} nvmlFieldValue_t;

_Static_assert(sizeof(nvmlUtilization_t) == 8 && sizeof(nvmlMemory_t) == 24 && sizeof(nvmlViolationTime_t) == 16, "");
_Static_assert(sizeof(nvmlFieldValue_t) == 40 && offsetof(nvmlFieldValue_t, valueType) == 24, "");
_Static_assert(offsetof(nvmlFieldValue_t, nvmlReturn) == 28 && offsetof(nvmlFieldValue_t, value) == 32, "");

enum {
	nvml_clock_sm = 1,
	nvml_clock_memory = 2,
	nvml_temperature_gpu = 0,
	nvml_volatile = 0, // since the driver was loaded
	nvml_power_average = 185,
	nvml_unsigned = 1,
	nvml_success = 0,
	nvml_not_found = 13, // NVML_ERROR_FUNCTION_NOT_FOUND
};

struct nvml_table {
	nvmlReturn_t (*Init)(void);
	const char *(*ErrorString)(nvmlReturn_t);
	nvmlReturn_t (*DriverVersion)(char *, unsigned);
	nvmlReturn_t (*Count)(unsigned *);
	nvmlReturn_t (*Handle)(unsigned, nvmlDevice_t *);
	nvmlReturn_t (*UUID)(nvmlDevice_t, char *, unsigned);
	nvmlReturn_t (*Name)(nvmlDevice_t, char *, unsigned);
	nvmlReturn_t (*Power)(nvmlDevice_t, unsigned *);
	nvmlReturn_t (*Energy)(nvmlDevice_t, unsigned long long *);
	nvmlReturn_t (*Fields)(nvmlDevice_t, int, nvmlFieldValue_t *);
	nvmlReturn_t (*Utilization)(nvmlDevice_t, nvmlUtilization_t *);
	nvmlReturn_t (*Memory)(nvmlDevice_t, nvmlMemory_t *);
	nvmlReturn_t (*Temperature)(nvmlDevice_t, int, unsigned *);
	nvmlReturn_t (*Clock)(nvmlDevice_t, int, unsigned *);
	nvmlReturn_t (*Violation)(nvmlDevice_t, int, nvmlViolationTime_t *);
	nvmlReturn_t (*ECC)(nvmlDevice_t, int, int, unsigned long long *);
	nvmlReturn_t (*MIG)(nvmlDevice_t, unsigned *, unsigned *);
	void *double_notice; // only scalebench's test double has it
};

static inline nvmlReturn_t nvml_init(struct nvml_table *t) { return t->Init(); }
static inline const char *nvml_error(struct nvml_table *t, nvmlReturn_t r) { return t->ErrorString(r); }
static inline nvmlReturn_t nvml_driver(struct nvml_table *t, char *s, unsigned n) { return t->DriverVersion(s, n); }
static inline nvmlReturn_t nvml_count(struct nvml_table *t, unsigned *n) { return t->Count(n); }
static inline nvmlReturn_t nvml_handle(struct nvml_table *t, unsigned i, uintptr_t *d) {
	nvmlDevice_t device = NULL;
	nvmlReturn_t r = t->Handle(i, &device);
	*d = (uintptr_t)device;
	return r;
}

// A function that a driver does not have is answered for as NVML itself does it.
static inline nvmlReturn_t nvml_uuid(struct nvml_table *t, uintptr_t d, char *s, unsigned n) { return t->UUID((nvmlDevice_t)d, s, n); }
static inline nvmlReturn_t nvml_name(struct nvml_table *t, uintptr_t d, char *s, unsigned n) { return t->Name((nvmlDevice_t)d, s, n); }

static inline nvmlReturn_t nvml_energy(struct nvml_table *t, uintptr_t d, unsigned long long *mj) {
	return t->Energy == NULL ? nvml_not_found : t->Energy((nvmlDevice_t)d, mj);
}

// The mean power over a second, of drivers and GPUs that have it.
static inline nvmlReturn_t nvml_average(struct nvml_table *t, uintptr_t d, unsigned *mw) {
	nvmlFieldValue_t f = {.fieldId = nvml_power_average};
	if (t->Fields == NULL) {
		return nvml_not_found;
	}
	nvmlReturn_t r = t->Fields((nvmlDevice_t)d, 1, &f);
	if (r != nvml_success) {
		return r;
	}
	if (f.nvmlReturn == nvml_success && f.valueType != nvml_unsigned) {
		return nvml_not_found;
	}
	*mw = f.value.ui;
	return f.nvmlReturn;
}

static inline nvmlReturn_t nvml_power(struct nvml_table *t, uintptr_t d, unsigned *mw) { return t->Power((nvmlDevice_t)d, mw); }
static inline nvmlReturn_t nvml_busy(struct nvml_table *t, uintptr_t d, unsigned *percent) {
	nvmlUtilization_t u = {0, 0};
	nvmlReturn_t r = t->Utilization((nvmlDevice_t)d, &u);
	*percent = u.gpu;
	return r;
}
static inline nvmlReturn_t nvml_memory(struct nvml_table *t, uintptr_t d, unsigned long long *used) {
	nvmlMemory_t m = {0, 0, 0};
	nvmlReturn_t r = t->Memory((nvmlDevice_t)d, &m);
	*used = m.used;
	return r;
}
static inline nvmlReturn_t nvml_temperature(struct nvml_table *t, uintptr_t d, unsigned *celsius) {
	return t->Temperature((nvmlDevice_t)d, nvml_temperature_gpu, celsius);
}
static inline nvmlReturn_t nvml_clock(struct nvml_table *t, uintptr_t d, int which, unsigned *mhz) {
	return t->Clock((nvmlDevice_t)d, which, mhz);
}
static inline nvmlReturn_t nvml_violation(struct nvml_table *t, uintptr_t d, int policy, unsigned long long *ns) {
	nvmlViolationTime_t v = {0, 0};
	nvmlReturn_t r = t->Violation == NULL ? nvml_not_found : t->Violation((nvmlDevice_t)d, policy, &v);
	*ns = v.violationTime;
	return r;
}
static inline nvmlReturn_t nvml_ecc(struct nvml_table *t, uintptr_t d, int uncorrected, unsigned long long *n) {
	return t->ECC == NULL ? nvml_not_found : t->ECC((nvmlDevice_t)d, uncorrected, nvml_volatile, n);
}
static inline nvmlReturn_t nvml_mig(struct nvml_table *t, uintptr_t d, unsigned *current) {
	unsigned pending = 0;
	return t->MIG == NULL ? nvml_not_found : t->MIG((nvmlDevice_t)d, current, &pending);
}
