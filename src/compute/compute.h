/* SPDX-License-Identifier: Apache-2.0 */
/* compute: the elementwise functions of base/tables/fn.def on real data, for run (speed) and sim
 * (replay).
 *
 *   functions.h   the contract, bit for bit, and the calls
 *   sample.h      data for checking collectives, and their results
 *   generic.c     plain C, the definition; every other variant gives the same bits
 *   convert.h     one value from and to each dtype; stage.h: blocks of them
 *   pair.h        the two-operand functions on one pair of values
 *   elementary.h  exp, log, tanh, ...: one definition in plain arithmetic, shared by all variants
 *   record.h      elements of two parts: complex numbers, values with an index
 *   atomic.c      accumulate
 *   own.h         ops with a function of their own
 *   product.h     products of matrices: by a CBLAS, or plain loops
 *   formula.h     user-defined reductions, block by block
 *   simd/         the SIMD variants: their loops (vector.inc, vector_loop.inc, two_f32.inc), the
 *                 instructions (avx2.c, avx512.c, neon.c), those that this build has (variants.h),
 *                 which of them this machine can run (find.c)
 *
 * Start reading at functions.h.
 */
#ifndef PEAL_COMPUTE_COMPUTE_H
#define PEAL_COMPUTE_COMPUTE_H

#include "compute/formula.h"
#include "compute/functions.h"
#include "compute/own.h"
#include "compute/product.h"
#include "compute/sample.h"

#endif
