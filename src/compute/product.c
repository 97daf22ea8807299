/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by a CBLAS or by plain loops; see product.h. */
#include "compute/product.h"

#include <assert.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 }; /* of the standard interface */

typedef void sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                   const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
typedef void dgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, double alpha,
                   const double *a, int lda, const double *b, int ldb, double beta, double *c,
                   int ldc);

/* Loaded once per process and kept. */
static struct {
    pthread_once_t once;
    const char *name;
    sgemm *f32;
    dgemm *f64;
} blas = {.once = PTHREAD_ONCE_INIT};

static bool load(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    void *f32 = dlsym(library, "cblas_sgemm"), *f64 = dlsym(library, "cblas_dgemm");
    if (!f32 || !f64) {
        dlclose(library);
        return false;
    }
    memcpy(&blas.f32, &f32, sizeof f32);
    memcpy(&blas.f64, &f64, sizeof f64);
    blas.name = name;
    return true;
}

static void find_blas(void)
{
    static const char *const names[] = {"libopenblas.so.0", "libcblas.so.3", "libblas.so.3"};
    const char *wanted = getenv("PEAL_BLAS");
    if (wanted && strcmp(wanted, "none") == 0)
        return;
    if (wanted && *wanted) {
        char *kept = strdup(wanted);
        if (kept && !load(kept))
            free(kept);
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (load(names[i]))
            return;
    }
}

const char *peal_product_library(void)
{
    pthread_once(&blas.once, find_blas);
    return blas.name;
}

/* Rows of b are added to a row of c: the inner loop goes along memory. */
static void plain_f32(const struct peal_product *p)
{
    const float *a = p->a, *b = p->b;
    float *c = p->c;
    for (uint64_t i = 0; i < p->rows; i++) {
        float *row = c + i * p->c_stride;
        if (!p->adds)
            memset(row, 0, p->columns * sizeof *row);
        for (uint64_t k = 0; k < p->inner; k++) {
            float factor = a[i * p->a_stride + k];
            for (uint64_t j = 0; j < p->columns; j++)
                row[j] += factor * b[k * p->b_stride + j];
        }
    }
}

static void plain_f64(const struct peal_product *p)
{
    const double *a = p->a, *b = p->b;
    double *c = p->c;
    for (uint64_t i = 0; i < p->rows; i++) {
        double *row = c + i * p->c_stride;
        if (!p->adds)
            memset(row, 0, p->columns * sizeof *row);
        for (uint64_t k = 0; k < p->inner; k++) {
            double factor = a[i * p->a_stride + k];
            for (uint64_t j = 0; j < p->columns; j++)
                row[j] += factor * b[k * p->b_stride + j];
        }
    }
}

void peal_product_run_plain(const struct peal_product *p)
{
    assert(p->dtype == PEAL_F32 || p->dtype == PEAL_F64);
    if (p->dtype == PEAL_F32)
        plain_f32(p);
    else
        plain_f64(p);
}

/* A library is not worth its call, or being loaded, for fewer multiplications than this. */
enum { LEAST_WORK = 16384 };

static bool is_small(const struct peal_product *p)
{
    uint64_t work;
    return peal_size_mul(p->rows, p->columns, &work) && peal_size_mul(work, p->inner, &work) &&
           work < LEAST_WORK;
}

/* Its interface counts in int, and wants strides of at least a row. */
static bool fits_blas(const struct peal_product *p)
{
    return p->rows <= INT32_MAX && p->a_stride <= INT32_MAX && p->b_stride <= INT32_MAX &&
           p->c_stride <= INT32_MAX && p->inner <= p->a_stride && p->columns <= p->b_stride &&
           p->columns <= p->c_stride && p->inner > 0;
}

void peal_product_run(const struct peal_product *p)
{
    if (p->rows == 0 || p->columns == 0)
        return;
    if (is_small(p) || !fits_blas(p) || !peal_product_library()) {
        peal_product_run_plain(p);
        return;
    }
    int m = (int)p->rows, n = (int)p->columns, k = (int)p->inner;
    int lda = (int)p->a_stride, ldb = (int)p->b_stride, ldc = (int)p->c_stride;
    if (p->dtype == PEAL_F32)
        blas.f32(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, p->a, lda, p->b, ldb,
                 p->adds ? 1 : 0, p->c, ldc);
    else
        blas.f64(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, p->a, lda, p->b, ldb,
                 p->adds ? 1 : 0, p->c, ldc);
}
