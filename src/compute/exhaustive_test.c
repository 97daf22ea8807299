/* SPDX-License-Identifier: Apache-2.0 */
/* Every f16 and bf16 value into f32, and every f32 value into f16 and bf16: all variants against
 * generic C. The second takes 2^32 values; without an argument every 4099th. */
#include "compute/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16 };

static uint32_t wide[BLOCK], expected_wide[BLOCK], got_wide[BLOCK];
static uint16_t narrow[BLOCK], expected_narrow[BLOCK], got_narrow[BLOCK];

static void convert(const struct peal_compute *variant, void *dst, enum peal_dtype to, void *src,
                    enum peal_dtype from)
{
    struct peal_operand a = {dst, 0, to}, b = {src, 0, from};
    variant->combine(PEAL_FN_ID, &a, &b, 1, BLOCK, 1);
}

static int check_widening(const struct peal_compute *variant, enum peal_dtype dtype)
{
    for (uint32_t i = 0; i < BLOCK; i++)
        narrow[i] = (uint16_t)i;
    convert(&peal_compute_generic, expected_wide, PEAL_F32, narrow, dtype);
    convert(variant, got_wide, PEAL_F32, narrow, dtype);
    for (uint32_t i = 0; i < BLOCK; i++) {
        if (got_wide[i] != expected_wide[i]) {
            printf("%s: %s 0x%04x gives 0x%08x instead of 0x%08x\n", variant->name,
                   peal_dtype_name(dtype), i, got_wide[i], expected_wide[i]);
            return 1;
        }
    }
    return 0;
}

static int check_narrowing(const struct peal_compute *variant, enum peal_dtype dtype, uint32_t step)
{
    for (uint64_t first = 0; first < UINT64_C(1) << 32; first += (uint64_t)BLOCK * step) {
        for (uint32_t i = 0; i < BLOCK; i++)
            wide[i] = (uint32_t)first + i * step;
        convert(&peal_compute_generic, expected_narrow, dtype, wide, PEAL_F32);
        convert(variant, got_narrow, dtype, wide, PEAL_F32);
        for (uint32_t i = 0; i < BLOCK; i++) {
            if (got_narrow[i] != expected_narrow[i]) {
                printf("%s: 0x%08x gives %s 0x%04x instead of 0x%04x\n", variant->name, wide[i],
                       peal_dtype_name(dtype), got_narrow[i], expected_narrow[i]);
                return 1;
            }
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint32_t step = argc > 1 && strcmp(argv[1], "all") == 0 ? 1 : 4099;
    int failed = 0;
    const struct peal_compute *variant;
    for (unsigned i = 1; (variant = peal_compute_at(i)); i++) {
        for (enum peal_dtype dtype = PEAL_F16; dtype <= PEAL_BF16; dtype++)
            failed |= check_widening(variant, dtype) | check_narrowing(variant, dtype, step);
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
