// cuBLAS's part: products of matrices, by columns. Sums are made in double
// precision, in order, and rounded once.
#include "double.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef int cublasStatus_t;

enum { NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };

enum { R_32F = 0, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_32F_FAST_TF32 = 77, TF32_MATH = 3 };

struct cublasContext {
	struct stream *stream;
	void *workspace;
	int device, math;
};

const char *cublasGetStatusString(cublasStatus_t s) {
	switch (s) {
	case 0: return "success";
	case NOT_INITIALIZED: return "the library was not initialized";
	case ALLOC_FAILED: return "the resource allocation failed";
	case INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
	case EXECUTION_FAILED: return "the function failed to launch on the GPU";
	case NOT_SUPPORTED: return "the requested functionality is not supported";
	}
	return "unrecognized status";
}

cublasStatus_t cublasGetProperty(int which, int *v) {
	static const int version[] = {12, 4, 5};
	if (which < 0 || which > 2) return INVALID_VALUE;
	*v = version[which];
	return 0;
}

cublasStatus_t cublasCreate_v2(struct cublasContext **out) {
	write_down(__func__, NULL, NULL);
	if (current_device() < 0 || device_error() != 0) return NOT_INITIALIZED;
	if (setting("CUBLAS_DOUBLE_OUT_OF_MEMORY", 0) != 0) return ALLOC_FAILED;
	*out = calloc(1, sizeof **out);
	(*out)->device = current_device();
	return 0;
}

cublasStatus_t cublasDestroy_v2(struct cublasContext *h) {
	write_down(__func__, NULL, NULL);
	if (h == NULL) return NOT_INITIALIZED;
	free(h);
	return 0;
}

// A new stream takes the workspace away, as cuBLAS does it.
cublasStatus_t cublasSetStream_v2(struct cublasContext *h, struct stream *s) {
	if (h == NULL) return NOT_INITIALIZED;
	write_down(__func__, s, NULL);
	h->stream = s;
	h->workspace = NULL;
	return 0;
}

cublasStatus_t cublasSetWorkspace_v2(struct cublasContext *h, void *at, size_t bytes) {
	if (h == NULL) return NOT_INITIALIZED;
	write_down(__func__, h->stream, NULL);
	if (at == NULL || bytes == 0 || (uintptr_t)at % 256 != 0) return INVALID_VALUE;
	h->workspace = at;
	return 0;
}

cublasStatus_t cublasSetMathMode(struct cublasContext *h, int mode) {
	if (h == NULL) return NOT_INITIALIZED;
	if ((mode & ~16) < 0 || (mode & ~16) > TF32_MATH) return INVALID_VALUE;
	h->math = mode & ~16;
	return 0;
}

struct matrix {
	unsigned char *at;
	int type, leading, transposed;
};

struct product {
	int m, n, k, tf32;
	float alpha, beta;
	struct matrix a, b, c;
	long number;
};

static float element(const struct matrix *m, size_t row, size_t column) {
	size_t i = m->transposed ? column + row * (size_t)m->leading : row + column * (size_t)m->leading;
	uint32_t bits;
	if (m->type == R_32F) {
		memcpy(&bits, m->at + 4 * i, 4);
	} else {
		uint16_t half;
		memcpy(&half, m->at + 2 * i, 2);
		bits = (uint32_t)half << 16;
	}
	float v;
	memcpy(&v, &bits, 4);
	return v;
}

// rounded leaves so many bits of a mantissa, to the nearest, ties to even.
static float rounded(float v, int bits) {
	uint32_t u;
	memcpy(&u, &v, 4);
	if (!isfinite(v)) return v;
	int drop = 23 - bits;
	u += (1u << (drop - 1)) - 1 + (u >> drop & 1);
	u &= ~((1u << drop) - 1);
	memcpy(&v, &u, 4);
	return v;
}

// BLOCK of the inner dimension at a time, so that the copies as double stay small.
enum { BLOCK = 128 };

static void multiply(double *restrict sums, const struct product *p) {
	double *a = malloc(sizeof *a * (size_t)p->m * BLOCK);
	for (int from = 0; from < p->k; from += BLOCK) {
		int block = p->k - from < BLOCK ? p->k - from : BLOCK;
		for (int l = 0; l < block; l++)
			for (int i = 0; i < p->m; i++) {
				float v = element(&p->a, (size_t)i, (size_t)(from + l));
				a[(size_t)l * (size_t)p->m + (size_t)i] = p->tf32 ? rounded(v, 10) : v;
			}
		for (int j = 0; j < p->n; j++) {
			double *restrict to = sums + (size_t)j * (size_t)p->m;
			for (int l = 0; l < block; l++) {
				float v = element(&p->b, (size_t)(from + l), (size_t)j);
				double b = p->tf32 ? rounded(v, 10) : v;
				const double *row = a + (size_t)l * (size_t)p->m;
				for (int i = 0; i < p->m; i++) to[i] += row[i] * b;
			}
		}
	}
	free(a);
}

static void run(void *of) {
	struct product *p = of;
	if (device_error() != 0) return;
	double *sums = calloc((size_t)p->m * (size_t)p->n, sizeof *sums);
	multiply(sums, p);
	for (int j = 0; j < p->n; j++)
		for (int i = 0; i < p->m; i++) {
			double v = (double)p->alpha * sums[(size_t)j * (size_t)p->m + (size_t)i];
			if (p->beta != 0) v += (double)p->beta * element(&p->c, (size_t)i, (size_t)j);
			float f = p->c.type == R_32F ? (float)v : rounded((float)v, 7);
			uint32_t bits;
			memcpy(&bits, &f, 4);
			if (p->number == setting("CUBLAS_DOUBLE_CORRUPT", 0) && i == p->m - 1 && j == p->n - 1) bits ^= 1u << 22; // the highest of the mantissa
			size_t at = (size_t)i + (size_t)j * (size_t)p->c.leading;
			uint16_t half = (uint16_t)(bits >> 16);
			if (p->c.type == R_32F)
				memcpy(p->c.at + 4 * at, &bits, 4);
			else
				memcpy(p->c.at + 2 * at, &half, 2);
		}
	free(sums);
}

static atomic_long products;

cublasStatus_t cublasGemmEx(struct cublasContext *h, int ta, int tb, int m, int n, int k, const float *alpha, const void *a, int type_a, int lda, const void *b, int type_b, int ldb, const float *beta, void *c, int type_c, int ldc, int compute, int algorithm) {
	if (h == NULL || h->stream == NULL || h->workspace == NULL) return NOT_INITIALIZED;
	write_down(__func__, h->stream, NULL);
	if (current_device() != h->device || device_error() != 0) return EXECUTION_FAILED;
	if (m < 0 || n < 0 || k < 0 || ta < 0 || ta > 1 || tb < 0 || tb > 1 || alpha == NULL || beta == NULL || algorithm != -1) return INVALID_VALUE;
	if (lda < (ta ? k : m) || lda < 1 || ldb < (tb ? n : k) || ldb < 1 || ldc < m || ldc < 1) return INVALID_VALUE;
	if (type_a != type_b || (type_a != R_32F && type_a != R_16BF) || (type_c != R_32F && type_c != type_a)) return NOT_SUPPORTED;
	if (compute != COMPUTE_32F && (compute != COMPUTE_32F_FAST_TF32 || type_a != R_32F)) return NOT_SUPPORTED;
	long number = atomic_fetch_add(&products, 1) + 1;
	if (number == setting("CUBLAS_DOUBLE_ERROR", 0)) return EXECUTION_FAILED;
	if (m == 0 || n == 0) return 0;
	struct product p = {
		.m = m, .n = n, .k = k, .tf32 = type_a == R_32F && (compute == COMPUTE_32F_FAST_TF32 || h->math == TF32_MATH), .alpha = *alpha, .beta = *beta, .number = number,
		.a = {HOST(a), type_a, lda, ta}, .b = {HOST(b), type_b, ldb, tb}, .c = {HOST(c), type_c, ldc, 0},
	};
	stream_enqueue(h->stream, run, &p, sizeof p);
	return 0;
}
