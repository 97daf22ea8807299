/* SPDX-License-Identifier: Apache-2.0 */
/* The built-in function `matmul`: c = a b, or c += a b, row by row. CBLAS is used if one can be
 * loaded (Debian's OpenBLAS, or any library with the standard names), a plain loop otherwise. */
#include "host/state.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 }; /* of the standard interface */

typedef void sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                   const double *a, int lda, const double *b, int ldb, double beta, double *c,
                   int ldc);

static struct {
    pthread_once_t once;
    sgemm *f32;
    dgemm *f64;
} blas = {.once = PTHREAD_ONCE_INIT};

static void load_blas(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"};
    if (getenv("PEAL_NO_BLAS"))
        return;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        if (!library)
            continue;
        void *f32 = dlsym(library, "cblas_sgemm"), *f64 = dlsym(library, "cblas_dgemm");
        if (f32 && f64) {
            memcpy(&blas.f32, &f32, sizeof f32);
            memcpy(&blas.f64, &f64, sizeof f64);
            return;
        }
        dlclose(library);
    }
}

struct sizes {
    uint64_t m, k, n;
};

/* a[m,k] b[k,n] c[m,n]; false: they do not fit. */
static bool find_sizes(const struct peal_function_call *call, struct sizes *out)
{
    const struct peal_function_arg *a = &call->args[0], *b = &call->args[1], *c = &call->args[2];
    if (a->ndims != 2 || b->ndims != 2 || c->ndims != 2)
        return false;
    *out = (struct sizes){a->shape[0], a->shape[1], b->shape[1]};
    return b->shape[0] == out->k && c->shape[0] == out->m && c->shape[1] == out->n &&
           a->dtype == b->dtype && b->dtype == c->dtype &&
           (a->dtype == PEAL_F32 || a->dtype == PEAL_F64) && out->m < INT32_MAX &&
           out->k < INT32_MAX && out->n < INT32_MAX;
}

/* Rows of b are added to a row of c: the inner loop goes along memory. */
static void plain_f32(const struct sizes *s, const float *a, const float *b, float *c)
{
    for (uint64_t i = 0; i < s->m; i++) {
        for (uint64_t p = 0; p < s->k; p++) {
            float factor = a[i * s->k + p];
            for (uint64_t j = 0; j < s->n; j++)
                c[i * s->n + j] += factor * b[p * s->n + j];
        }
    }
}

static void plain_f64(const struct sizes *s, const double *a, const double *b, double *c)
{
    for (uint64_t i = 0; i < s->m; i++) {
        for (uint64_t p = 0; p < s->k; p++) {
            double factor = a[i * s->k + p];
            for (uint64_t j = 0; j < s->n; j++)
                c[i * s->n + j] += factor * b[p * s->n + j];
        }
    }
}

static enum peal_status run(const struct peal_function_call *call, void *context)
{
    struct sizes s;
    (void)context;
    if (!find_sizes(call, &s)) {
        snprintf(call->error, call->error_cap, "a[m,k] b[k,n] c[m,n] of f32 or f64 are needed");
        return PEAL_INVALID;
    }
    const void *a = call->args[0].data, *b = call->args[1].data;
    void *c = call->args[2].data;
    bool adds = call->args[3].value != 0, f32 = call->args[0].dtype == PEAL_F32;
    int m = (int)s.m, k = (int)s.k, n = (int)s.n;
    if (!adds)
        memset(c, 0, s.m * s.n * peal_dtype_size(call->args[0].dtype));
    if (!m || !n || !k)
        return PEAL_OK;
    pthread_once(&blas.once, load_blas);
    if (f32 && blas.f32)
        blas.f32(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, a, k, b, n, 1, c, n);
    else if (!f32 && blas.f64)
        blas.f64(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, a, k, b, n, 1, c, n);
    else if (f32)
        plain_f32(&s, a, b, c);
    else
        plain_f64(&s, a, b, c);
    return PEAL_OK;
}

/* The host fills in what it costs on its machine: see peal_host_open. */
const struct peal_function peal_matmul_function = {
    .name = "matmul", .run = run, .parameters = "in, in, inout, int"};
