// Modules and kernels: the host's version of a kernel runs, by the name in PTX.
#include "double.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_KERNELS = 256, MOST_ARGS = 4096 };

struct kernel {
	const char *name;
	size_t bytes;
	void (*run)(const void *, unsigned long long);
};

static struct kernel kernels[MOST_KERNELS];
static int known;

void double_kernel(const char *name, size_t bytes, void (*run)(const void *, unsigned long long)) {
	if (known == MOST_KERNELS || bytes > MOST_ARGS) abort();
	kernels[known++] = (struct kernel){name, bytes, run};
}

static const struct kernel *kernel_of(const char *name, size_t length) {
	for (int i = 0; i < known; i++)
		if (strlen(kernels[i].name) == length && memcmp(kernels[i].name, name, length) == 0) return &kernels[i];
	return NULL;
}

struct module {
	char *text;
};

// Messages of the "compiler".
struct log {
	char *to;
	size_t room;
};

static CUresult complain(struct log l, const char *format, ...) {
	va_list args;
	va_start(args, format);
	if (l.to != NULL) vsnprintf(l.to, l.room, format, args);
	va_end(args);
	return CUDA_INVALID_PTX;
}

static const char entry[] = ".entry ";

// check holds every entry against the host's version of it: there has to be one,
// with one parameter, of the same size.
static CUresult check(const char *text, struct log l) {
	if (strstr(text, ".version ") == NULL || strstr(text, ".target sm_") == NULL || strstr(text, ".address_size 64") == NULL)
		return complain(l, "DOUBLE: no .version, .target or .address_size 64: this is not PTX");
	for (const char *at = text; (at = strstr(at, entry)) != NULL;) {
		at += sizeof entry - 1;
		size_t length = strcspn(at, "( \t\n");
		const struct kernel *k = kernel_of(at, length);
		if (k == NULL) return complain(l, "DOUBLE: entry %.*s: the double was built without this kernel", (int)length, at);
		const char *end = strchr(at, ')'), *parameter = strstr(at, ".param "), *size = strchr(at, '[');
		if (end == NULL || parameter == NULL || parameter > end || size == NULL || size > end)
			return complain(l, "DOUBLE: entry %s: no struct as its parameter", k->name);
		const char *second = strstr(parameter + 1, ".param ");
		if (second != NULL && second < end) return complain(l, "DOUBLE: entry %s: more than one parameter", k->name);
		if (strtoul(size + 1, NULL, 10) != k->bytes)
			return complain(l, "DOUBLE: entry %s: a parameter of %lu bytes, and of %zu bytes on the host", k->name, strtoul(size + 1, NULL, 10), k->bytes);
	}
	return 0;
}

CUresult cuModuleLoadDataEx(struct module **out, const void *image, unsigned options, const int *option, void *const *value) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	struct log l = {0};
	for (unsigned i = 0; i < options; i++) switch (option[i]) {
		case 3: case 4: break; // the log of information
		case 5: l.to = value[i]; break;
		case 6: l.room = (size_t)value[i]; break;
		default: return CUDA_INVALID_VALUE;
		}
	CUresult r = check(image, l);
	if (r != 0) return r;
	*out = malloc(sizeof **out);
	(*out)->text = strdup(image);
	return 0;
}

CUresult cuModuleUnload(struct module *m) {
	NEED_CONTEXT;
	NEED_NO_CAPTURE;
	free(m->text);
	free(m);
	return 0;
}

CUresult cuModuleGetFunction(const struct kernel **out, struct module *m, const char *name) {
	NEED_CONTEXT;
	size_t length = strlen(name);
	for (const char *at = m->text; (at = strstr(at, entry)) != NULL;) {
		at += sizeof entry - 1;
		if (strcspn(at, "( \t\n") == length && memcmp(at, name, length) == 0) {
			*out = kernel_of(name, length);
			return 0;
		}
	}
	return CUDA_NOT_FOUND;
}

struct launch {
	const struct kernel *kernel;
	unsigned long long threads;
	long number;
	unsigned char args[MOST_ARGS] __attribute__((aligned(16)));
};

static void run(void *of) {
	struct launch *l = of;
	while (l->number == setting("CUDA_DOUBLE_HANG", 0)) pause();
	if (device_error() != 0) return;
	if (l->number == setting("CUDA_DOUBLE_ILLEGAL_ADDRESS", 0)) {
		device_fail(CUDA_ILLEGAL_ADDRESS);
		return;
	}
	long delay = setting("CUDA_DOUBLE_DELAY_US", 0);
	if (delay > 0) usleep((useconds_t)delay);
	l->kernel->run(l->args, l->threads);
}

static atomic_long launches;

CUresult cuLaunchKernel(const struct kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, struct stream *s, void **parameters, void **extra) {
	NEED_CONTEXT_ON(s, NULL);
	if (k == NULL || s == NULL || extra != NULL || parameters == NULL || parameters[0] == NULL) return CUDA_INVALID_VALUE;
	if (gx < 1 || gx > 0x7fffffff || gy != 1 || gz != 1 || bx < 1 || bx > 1024 || by != 1 || bz != 1 || shared != 0) return CUDA_INVALID_VALUE;
	long number = atomic_fetch_add(&launches, 1) + 1;
	if (number == setting("CUDA_DOUBLE_LAUNCH_ERROR", 0)) return CUDA_LAUNCH_OUT_OF_RESOURCES;
	struct launch l = {.kernel = k, .threads = (unsigned long long)gx * bx, .number = number};
	memcpy(l.args, parameters[0], k->bytes);
	stream_enqueue(s, run, &l, offsetof(struct launch, args) + k->bytes);
	return 0;
}
