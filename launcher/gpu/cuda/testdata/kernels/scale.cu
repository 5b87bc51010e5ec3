// The host's version of the kernel in scale.ptx.
#include "kernel.h"

struct scale_args {
	uint64_t to;
	int64_t n;
	float factor;
	int32_t unused;
};

static void scale_host(const void *args, unsigned long long threads) {
	const struct scale_args *a = args;
	float *to = (float *)(a->to - DEVICE);
	for (unsigned long long i = 0; i < threads; i++)
		if (i < (unsigned long long)a->n) to[i] *= a->factor;
}

__attribute__((constructor)) static void known(void) { double_kernel("scale", sizeof(struct scale_args), scale_host); }
