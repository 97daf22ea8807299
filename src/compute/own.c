/* SPDX-License-Identifier: Apache-2.0 */
/* See own.h. */
#include "compute/own.h"

#include "compute/product.h"

#include <assert.h>
#include <string.h>

static void multiply(const struct peal_own *own)
{
    const struct peal_own_operand *c = &own->operands[0], *a = c + 1, *b = c + 2;
    struct peal_product product = {
        .dtype = c->dtype,
        .rows = own->rows,
        .inner = own->inner,
        .columns = own->count,
        .a = a->at,
        .b = b->at,
        .c = c->at,
        .a_stride = a->stride,
        .b_stride = b->stride,
        .c_stride = c->stride,
    };
    peal_product_run(&product);
}

/* Is element i of a row of masks zero? Of floating-point numbers -0 is, and NaN is not. */
static inline bool is_zero(const char *row, uint64_t i, size_t size, bool is_float)
{
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (size) {
    case 1:
        memcpy(&u8, row + i, 1);
        return is_float ? (uint8_t)(u8 << 1) == 0 : u8 == 0;
    case 2:
        memcpy(&u16, row + 2 * i, 2);
        return is_float ? (uint16_t)(u16 << 1) == 0 : u16 == 0;
    case 4:
        memcpy(&u32, row + 4 * i, 4);
        return is_float ? u32 << 1 == 0 : u32 == 0;
    default:
        memcpy(&u64, row + 8 * i, 8);
        return is_float ? u64 << 1 == 0 : u64 == 0;
    }
}

static char *row_of(const struct peal_own_operand *o, uint64_t row)
{
    return (char *)o->at + row * o->stride * peal_dtype_size(o->dtype);
}

/* dst[i] = mask[i] != 0 ? a[i] : b[i], bytes unchanged. A source may be the destination itself. */
static void select_row(const struct peal_own *own, uint64_t row)
{
    const struct peal_own_operand *o = own->operands;
    size_t size = peal_dtype_size(o[0].dtype), mask_size = peal_dtype_size(o[1].dtype);
    bool is_float = peal_dtype_is_float(o[1].dtype);
    char *to = row_of(&o[0], row);
    const char *mask = row_of(&o[1], row), *a = row_of(&o[2], row), *b = row_of(&o[3], row);
    for (uint64_t i = 0; i < own->count; i++) {
        const char *from = is_zero(mask, i, mask_size, is_float) ? b : a;
        if (from != to)
            memcpy(to + i * size, from + i * size, size);
    }
}

void peal_own_run(const struct peal_own *own)
{
    switch (own->kind) {
    case PEAL_OP_MATMUL:
        multiply(own);
        return;
    case PEAL_OP_SELECT:
        for (uint64_t row = 0; row < own->rows; row++)
            select_row(own, row);
        return;
    case PEAL_OP_COPY:
    case PEAL_OP_COMPUTE:
    case PEAL_OP_ACCUMULATE:
    case PEAL_OP_NOTIFY:
    case PEAL_OP_WAIT:
    case PEAL_OP_PEEK:
    case PEAL_OP_FETCH_ADD:
    case PEAL_OP_COMPARE_SWAP:
    case PEAL_OP_TAKE:
    case PEAL_OP_FLUSH:
    case PEAL_OP_FENCE:
    case PEAL_OP_LAUNCH:
    case PEAL_OP_WHEN:
    case PEAL_OP_END:
    case PEAL_OP_SEND:
    case PEAL_OP_RECV:
    case PEAL_OP_RECV_SLOT:
    case PEAL_OP_FREE:
    case PEAL_OP_KIND_COUNT:
        break;
    }
    assert(!"an op has a function of its own");
}
