// NVML as far as scalebench calls it, over GPUs that exist in a text file. See
// double.go for what the file says.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int nvmlReturn_t;
typedef struct device *nvmlDevice_t;

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, NO_DRIVER = 9, LOST = 15, UNKNOWN = 999 };
enum { MOST_GPUS = 64, MOST_POINTS = 64, MOST_FAULTS = 64 };

struct gpu {
	int points;
	double at[MOST_POINTS], watts[MOST_POINTS];
	double window; // share of each period of 0.1 s that the power shown covers; 1: all
	double busy, memory, temperature, clock, memory_clock, throttled[12], corrected, uncorrected;
	int mig, lost, has_ecc, has_average;
};

struct fault {
	char call[64];
	int gpu, code, hangs; // gpu -1: all
};

struct script {
	double now;
	int gpus, faults;
	struct gpu gpu[MOST_GPUS];
	struct fault fault[MOST_FAULTS];
};

const char scalebenchDouble[] = "this is no NVML";
static int initialised;
static double began = -1;

static double monotonic(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Every call reads the file again, so that a test can change it at any time.
static int read_script(struct script *s) {
	memset(s, 0, sizeof *s);
	const char *path = getenv("NVML_DOUBLE");
	FILE *f = path != NULL ? fopen(path, "r") : NULL;
	if (f == NULL) return 0;
	if (began < 0) began = monotonic();
	s->now = monotonic() - began;
	char line[4096], word[64];
	struct gpu *g = NULL;
	while (fgets(line, sizeof line, f) != NULL) {
		int used = 0;
		double v = 0;
		if (sscanf(line, "%63s%n", word, &used) != 1 || word[0] == '#') continue;
		const char *rest = line + used;
		int one = sscanf(rest, "%lf", &v);
		if (strcmp(word, "time") == 0) {
			s->now = v;
		} else if (strcmp(word, "gpu") == 0 && s->gpus < MOST_GPUS) {
			g = &s->gpu[s->gpus++];
			g->window = 1;
		} else if (strcmp(word, "fail") == 0 && s->faults < MOST_FAULTS) {
			struct fault *x = &s->fault[s->faults++];
			sscanf(rest, "%63s %d %d", x->call, &x->gpu, &x->code);
		} else if (strcmp(word, "hang") == 0 && s->faults < MOST_FAULTS) {
			struct fault *x = &s->fault[s->faults++];
			x->hangs = 1;
			sscanf(rest, "%63s %d", x->call, &x->gpu);
		} else if (g == NULL) {
			continue;
		} else if (strcmp(word, "power") == 0) {
			double at = 0, watts = 0;
			int n = 0;
			while (g->points < MOST_POINTS && sscanf(rest, " %lf:%lf%n", &at, &watts, &n) == 2) {
				g->at[g->points] = at, g->watts[g->points++] = watts;
				rest += n;
			}
		} else if (strcmp(word, "window") == 0) {
			g->window = v;
		} else if (strcmp(word, "average") == 0) {
			g->has_average = 1;
		} else if (strcmp(word, "busy") == 0 && one == 1) {
			g->busy = v;
		} else if (strcmp(word, "memory") == 0) {
			g->memory = v;
		} else if (strcmp(word, "temperature") == 0) {
			g->temperature = v;
		} else if (strcmp(word, "clocks") == 0) {
			sscanf(rest, "%lf %lf", &g->clock, &g->memory_clock);
		} else if (strcmp(word, "throttled") == 0) {
			int policy = -1;
			double share = 0;
			if (sscanf(rest, "%d %lf", &policy, &share) == 2 && policy >= 0 && policy < 12) g->throttled[policy] = share;
		} else if (strcmp(word, "ecc") == 0) {
			g->has_ecc = sscanf(rest, "%lf %lf", &g->corrected, &g->uncorrected) == 2;
		} else if (strcmp(word, "mig") == 0) {
			g->mig = 1;
		} else if (strcmp(word, "lost") == 0) {
			g->lost = 1;
		}
	}
	fclose(f);
	return 1;
}

// Watts at an instant: straight lines between the points, level outside.
static double watts_at(const struct gpu *g, double t) {
	if (g->points == 0) return 0;
	if (t <= g->at[0]) return g->watts[0];
	for (int i = 1; i < g->points; i++)
		if (t <= g->at[i]) return g->watts[i - 1] + (g->watts[i] - g->watts[i - 1]) * (t - g->at[i - 1]) / (g->at[i] - g->at[i - 1]);
	return g->watts[g->points - 1];
}

// Joules from 0 to an instant: exactly the area under those lines.
static double joules_to(const struct gpu *g, double t) {
	double sum = 0, from = 0;
	for (int i = 0; i < g->points && g->at[i] < t; i++) {
		if (g->at[i] <= from) continue;
		sum += (g->at[i] - from) * (watts_at(g, from) + g->watts[i]) / 2;
		from = g->at[i];
	}
	return sum + (t - from) * (watts_at(g, from) + watts_at(g, t)) / 2;
}

static struct device { int index; } devices[MOST_GPUS];

// Reads the script for a call, and answers for the fault that it asks for. A call
// that hangs goes on once its line is gone.
static nvmlReturn_t begin(const char *call, int index, struct script *s) {
	if (!initialised && strcmp(call, "nvmlInit") != 0) return UNINITIALIZED;
	for (;;) {
		int hangs = 0;
		if (!read_script(s)) return NO_DRIVER;
		for (int i = 0; i < s->faults; i++) {
			struct fault *f = &s->fault[i];
			if (strcmp(f->call, call) != 0 || (f->gpu >= 0 && f->gpu != index)) continue;
			if (!f->hangs) return f->code;
			hangs = 1;
		}
		if (!hangs) break;
		struct timespec pause = {0, 5000000};
		nanosleep(&pause, NULL);
	}
	if (index >= s->gpus) return INVALID;
	return index >= 0 && s->gpu[index].lost ? LOST : SUCCESS;
}

#define OF_GPU(call)                                                      \
	struct script s;                                                  \
	if (d == NULL) return INVALID;                                    \
	nvmlReturn_t r = begin(call, d->index, &s);                       \
	if (r != SUCCESS) return r;                                       \
	struct gpu *g = &s.gpu[d->index];                                 \
	(void)g

nvmlReturn_t nvmlInit_v2(void) {
	struct script s;
	nvmlReturn_t r = begin("nvmlInit", -1, &s);
	initialised = r == SUCCESS;
	return r;
}

const char *nvmlErrorString(nvmlReturn_t r) {
	switch (r) {
	case SUCCESS: return "Success";
	case UNINITIALIZED: return "Uninitialized";
	case INVALID: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case 4: return "Insufficient Permissions";
	case NO_DRIVER: return "Driver Not Loaded";
	case LOST: return "GPU is lost";
	}
	return "Unknown Error";
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *text, unsigned n) {
	snprintf(text, n, "550.54.15");
	return initialised ? SUCCESS : UNINITIALIZED;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *n) {
	struct script s;
	nvmlReturn_t r = begin("nvmlDeviceGetCount", -1, &s);
	*n = r == SUCCESS ? (unsigned)s.gpus : 0;
	return r;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned i, nvmlDevice_t *d) {
	struct script s;
	if (i >= MOST_GPUS) return INVALID;
	nvmlReturn_t r = begin("nvmlDeviceGetHandleByIndex", (int)i, &s);
	if (r != SUCCESS) return r;
	devices[i].index = (int)i;
	*d = &devices[i];
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *text, unsigned n) {
	OF_GPU("nvmlDeviceGetUUID");
	snprintf(text, n, "GPU-d0ab1e%02d-0000-0000-0000-000000000000", d->index);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *text, unsigned n) {
	OF_GPU("nvmlDeviceGetName");
	snprintf(text, n, "DOUBLE, not a GPU");
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *mj) {
	OF_GPU("nvmlDeviceGetTotalEnergyConsumption");
	*mj = (unsigned long long)llround(joules_to(g, s.now) * 1000);
	return SUCCESS;
}

// The mean of the last window of a period of 0.1 s that has ended.
nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *mw) {
	OF_GPU("nvmlDeviceGetPowerUsage");
	double end = floor(s.now / 0.1 + 1e-9) * 0.1, length = 0.1 * g->window;
	*mw = (unsigned)lround((joules_to(g, end) - joules_to(g, end - length)) / length * 1000);
	return SUCCESS;
}

typedef struct {
	unsigned fieldId, scopeId;
	long long timestamp, latencyUsec;
	int valueType;
	nvmlReturn_t nvmlReturn;
	union {
		unsigned ui;
		unsigned long long ull;
	} value;
} field;

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t d, int n, field *f) {
	OF_GPU("nvmlDeviceGetFieldValues");
	for (int i = 0; i < n; i++) {
		f[i].nvmlReturn = f[i].fieldId == 185 && g->has_average ? SUCCESS : NOT_SUPPORTED;
		f[i].valueType = 1;
		f[i].value.ui = (unsigned)lround((joules_to(g, s.now) - joules_to(g, s.now - 1)) * 1000);
	}
	return SUCCESS;
}

// A GPU in MIG mode reports no utilisation.
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, unsigned *percent) {
	OF_GPU("nvmlDeviceGetUtilizationRates");
	if (g->mig) return NOT_SUPPORTED;
	percent[0] = (unsigned)g->busy, percent[1] = 1;
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, unsigned long long *m) {
	OF_GPU("nvmlDeviceGetMemoryInfo");
	m[0] = 85899345920ull, m[2] = (unsigned long long)g->memory, m[1] = m[0] - m[2];
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t d, int sensor, unsigned *celsius) {
	OF_GPU("nvmlDeviceGetTemperature");
	*celsius = (unsigned)g->temperature;
	return sensor == 0 ? SUCCESS : INVALID;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, int which, unsigned *mhz) {
	OF_GPU("nvmlDeviceGetClockInfo");
	*mhz = (unsigned)(which == 1 ? g->clock : g->memory_clock);
	return which == 1 || which == 2 ? SUCCESS : INVALID;
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t d, int policy, unsigned long long *v) {
	OF_GPU("nvmlDeviceGetViolationStatus");
	if (policy < 0 || policy >= 12) return INVALID;
	v[0] = (unsigned long long)llround(s.now * 1e6), v[1] = (unsigned long long)llround(s.now * g->throttled[policy] * 1e9);
	return SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t d, int kind, int counter, unsigned long long *n) {
	OF_GPU("nvmlDeviceGetTotalEccErrors");
	if (!g->has_ecc) return NOT_SUPPORTED;
	*n = (unsigned long long)(kind == 0 ? g->corrected : g->uncorrected);
	return counter == 0 ? SUCCESS : INVALID;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *current, unsigned *pending) {
	OF_GPU("nvmlDeviceGetMigMode");
	*current = *pending = (unsigned)g->mig;
	return SUCCESS;
}
