/* SPDX-License-Identifier: Apache-2.0 */
/* Which variants were built, and which of them this machine can run. */
#include "compute/functions.h"

#include "compute/simd/variants.h"

#include <string.h>
#ifdef PEAL_HAVE_AVX2
#include <cpuid.h>
#endif

static bool always(void)
{
    return true;
}

#ifdef PEAL_HAVE_AVX2
static bool has_avx2(void)
{
    unsigned a, b, c = 0, d; /* not every compiler's __builtin_cpu_supports knows f16c */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

#ifdef PEAL_HAVE_AVX512
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const struct {
    const struct peal_compute *variant;
    bool (*runs_here)(void);
} variants[] = {
    {&peal_compute_generic, always},
#ifdef PEAL_HAVE_AVX2
    {&peal_compute_avx2, has_avx2},
#endif
#ifdef PEAL_HAVE_AVX512
    {&peal_compute_avx512, has_avx512},
#endif
#ifdef PEAL_HAVE_NEON
    {&peal_compute_neon, always},
#endif
};

const struct peal_compute *peal_compute_at(unsigned index)
{
    for (unsigned i = 0; i < sizeof variants / sizeof *variants; i++) {
        if (variants[i].runs_here() && index-- == 0)
            return variants[i].variant;
    }
    return NULL;
}

const struct peal_compute *peal_compute_best(void)
{
    const struct peal_compute *best = &peal_compute_generic, *next;
    for (unsigned i = 0; (next = peal_compute_at(i)); i++)
        best = next;
    return best;
}

const struct peal_compute *peal_compute_find(const char *name)
{
    const struct peal_compute *variant;
    for (unsigned i = 0; (variant = peal_compute_at(i)); i++) {
        if (strcmp(variant->name, name) == 0)
            return variant;
    }
    return NULL;
}
