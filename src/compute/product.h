/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices: c = a b, or c += a b, row after row, of f32 or f64.
 *
 * The plain loop defines the op: each element is a sum of products, in the precision of its type.
 * The order of the additions is left open, so that a library may choose its own: two machines, or
 * two libraries, may differ in the last bits. For products that are not small a CBLAS is used, if
 * one can be loaded when it is first needed: PEAL_BLAS names a library, or is `none`; otherwise
 * Debian's OpenBLAS and the standard names are tried. How many threads it uses is the library's own
 * setting (OPENBLAS_NUM_THREADS).
 */
#ifndef PEAL_COMPUTE_PRODUCT_H
#define PEAL_COMPUTE_PRODUCT_H

#include "base/base.h"

#include <stdbool.h>
#include <stdint.h>

struct peal_product {
    enum peal_dtype dtype; /* PEAL_F32 or PEAL_F64 */
    bool adds;             /* to the previous content of c */
    uint64_t rows, inner, columns;
    const void *a, *b; /* no byte in common with c */
    void *c;
    uint64_t a_stride, b_stride, c_stride; /* elements from row to row */
};

void peal_product_run(const struct peal_product *p);
void peal_product_run_plain(const struct peal_product *p);
/* The file name of the CBLAS in use; NULL: there is none, and the plain loop runs. */
const char *peal_product_library(void);

#endif
