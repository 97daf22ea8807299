/* SPDX-License-Identifier: Apache-2.0 */
/* The SIMD variants; the build defines PEAL_HAVE_... for those it compiles (meson.build). */
#ifndef PEAL_COMPUTE_VARIANTS_H
#define PEAL_COMPUTE_VARIANTS_H

#include "compute/functions.h"

#ifdef PEAL_HAVE_AVX2
extern const struct peal_compute peal_compute_avx2;
#endif
#ifdef PEAL_HAVE_AVX512
extern const struct peal_compute peal_compute_avx512;
#endif
#ifdef PEAL_HAVE_NEON
extern const struct peal_compute peal_compute_neon;
#endif

#endif
