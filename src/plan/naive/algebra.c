/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of data as functions on numbers modulo 2^61 - 1. See naive.h. */
#include "plan/naive/naive.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PRIME ((UINT64_C(1) << 61) - 1)
__extension__ typedef unsigned __int128 naive_wide;

static uint64_t add(uint64_t a, uint64_t b)
{
    return (a + b) % PRIME;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
    return (uint64_t)((naive_wide)a * b % PRIME);
}

static uint64_t power(uint64_t a, uint64_t n)
{
    uint64_t out = 1;
    for (; n; n >>= 1) {
        if (n & 1)
            out = multiply(out, a);
        a = multiply(a, a);
    }
    return out;
}

uint64_t peal_naive_divide(uint64_t value, uint64_t by)
{
    return multiply(value, power(by % PRIME, PRIME - 2));
}

uint64_t peal_naive_input(uint32_t launch, uint32_t rank, uint32_t param, uint64_t element)
{
    uint64_t where = peal_hash_u64((uint64_t)launch << 32 | rank, peal_hash_u64(param, 17));
    return peal_hash_u64(element, where) % PRIME;
}

uint64_t peal_naive_undefined(void)
{
    return peal_hash_u64(1, 4711) % PRIME;
}

uint64_t peal_naive_constant(double value)
{
    uint64_t bits;
    if (value == floor(value) && fabs(value) < 0x1p53) {
        if (value < 0)
            return PRIME - (uint64_t)-value % PRIME;
        return (uint64_t)value % PRIME;
    }
    memcpy(&bits, &value, sizeof bits);
    return peal_hash_u64(bits, 99) % PRIME;
}

static uint64_t two(enum peal_fn fn, uint64_t a, uint64_t b)
{
    switch (fn) {
    case PEAL_FN_ADD:
        return add(a, b);
    case PEAL_FN_SUB:
        return add(a, PRIME - b);
    case PEAL_FN_MUL:
        return multiply(a, b);
    case PEAL_FN_MAXIMUM:
    case PEAL_FN_MAXLOC:
        return a > b ? a : b;
    case PEAL_FN_MINIMUM:
    case PEAL_FN_MINLOC:
        return a < b ? a : b;
    case PEAL_FN_AND:
        return (a & b) % PRIME;
    case PEAL_FN_OR:
        return (a | b) % PRIME;
    case PEAL_FN_XOR:
        return (a ^ b) % PRIME;
    default:
        return peal_hash_u64(b, peal_hash_u64(a, (uint64_t)fn + 1000)) % PRIME;
    }
}

uint64_t peal_naive_apply(enum peal_fn fn, const uint64_t *operands, uint32_t n)
{
    uint64_t out = operands[0];
    if (fn == PEAL_FN_ID)
        return out;
    if (fn == PEAL_FN_FMA)
        return add(multiply(operands[0], operands[1]), operands[2]);
    if (fn == PEAL_FN_CLAMP)
        return two(PEAL_FN_MINIMUM, two(PEAL_FN_MAXIMUM, operands[0], operands[1]), operands[2]);
    if (fn == PEAL_FN_NEG)
        return (PRIME - out) % PRIME;
    if (peal_fn_info(fn)->operands == 1)
        return peal_hash_u64(out, (uint64_t)fn + 2000) % PRIME;
    for (uint32_t i = 1; i < n; i++)
        out = two(fn, out, operands[i]);
    return out;
}

uint64_t peal_naive_own(enum peal_op_kind kind, const uint64_t *operands)
{
    switch (kind) {
    case PEAL_OP_MATMUL:
        return peal_naive_apply(PEAL_FN_FMA, operands, 3);
    case PEAL_OP_SELECT: /* decided if the mask is the constant 0 or 1 */
        if (operands[0] == peal_naive_constant(0) || operands[1] == operands[2])
            return operands[2];
        if (operands[0] == peal_naive_constant(1))
            return operands[1];
        return peal_hash_u64(operands[2], peal_hash_u64(operands[1], operands[0] + 3000)) % PRIME;
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
    return 0;
}
