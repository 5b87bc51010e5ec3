// cuBLAS's functions and types as its header declares them, unchanged from 11.4 to
// 13.4, and a function around each pointer, since Go cannot call through one.
#pragma once
#include <stdint.h>
#include <stdlib.h>

typedef struct cublasContext *cublasHandle_t;
typedef int cublasStatus_t;
typedef void *cudaStream_t;

struct cublas_table {
	cublasStatus_t (*GetProperty)(int, int *);
	const char *(*GetStatusString)(cublasStatus_t);
	cublasStatus_t (*Create)(cublasHandle_t *);
	cublasStatus_t (*Destroy)(cublasHandle_t);
	cublasStatus_t (*SetStream)(cublasHandle_t, cudaStream_t);
	cublasStatus_t (*SetWorkspace)(cublasHandle_t, void *, size_t);
	cublasStatus_t (*SetMathMode)(cublasHandle_t, int);
	cublasStatus_t (*GemmEx)(cublasHandle_t, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, void *, int, int, int, int);
	void *double_notice; // of the double only
};

// A matrix as it lies in memory, by columns.
struct cublas_matrix {
	uintptr_t at;
	int type, leading, transposed;
};

static inline cublasStatus_t cublas_property(struct cublas_table *t, int which, int *v) { return t->GetProperty(which, v); }
static inline const char *cublas_words(struct cublas_table *t, cublasStatus_t s) { return t->GetStatusString == NULL ? NULL : t->GetStatusString(s); }
static inline cublasStatus_t cublas_create(struct cublas_table *t, cublasHandle_t *h) { return t->Create(h); }
static inline cublasStatus_t cublas_destroy(struct cublas_table *t, cublasHandle_t h) { return t->Destroy(h); }
static inline cublasStatus_t cublas_stream(struct cublas_table *t, cublasHandle_t h, uintptr_t s) { return t->SetStream(h, (cudaStream_t)s); }
static inline cublasStatus_t cublas_workspace(struct cublas_table *t, cublasHandle_t h, uintptr_t at, size_t n) { return t->SetWorkspace(h, (void *)at, n); }
static inline cublasStatus_t cublas_math(struct cublas_table *t, cublasHandle_t h, int mode) { return t->SetMathMode(h, mode); }
// c = alpha·a·b + beta·c; c is m×n. CUBLAS_OP_N is 0, CUBLAS_OP_T 1.
static inline cublasStatus_t cublas_product(struct cublas_table *t, cublasHandle_t h, int m, int n, int k, float alpha, struct cublas_matrix a, struct cublas_matrix b, float beta, struct cublas_matrix c, int compute) {
	return t->GemmEx(h, a.transposed, b.transposed, m, n, k, &alpha, (void *)a.at, a.type, a.leading, (void *)b.at, b.type, b.leading, &beta, (void *)c.at, c.type, c.leading, compute, -1 /* CUBLAS_GEMM_DEFAULT */);
}
