/* SPDX-License-Identifier: Apache-2.0 */
/* Every predefined operation on every basic type that Peal supports, with values of the whole
 * range, compared with the same in C: integers wrap around, and unsigned ones compare as unsigned.
 * Both MPIs differ from that for some types, so this is run with Peal only. */
#include "check.h"

#include <stdbool.h>

enum { COUNT = 37, MAX_RANKS = 16, MAX_BYTES = 16 };

enum op { SUM, PROD, MAX, MIN, BAND, BOR, BXOR, LAND, LOR, LXOR, OPS };
static MPI_Op handles[OPS];

/* Which operations a type has. */
enum { ARITHMETIC = 1 << SUM | 1 << PROD, ORDER = 1 << MAX | 1 << MIN };
enum { BITS = 1 << BAND | 1 << BOR | 1 << BXOR, LOGIC = 1 << LAND | 1 << LOR | 1 << LXOR };

/* Applies an operation to elements in memory: a = a op b. */
typedef void combine(enum op op, void *a, const void *b);

#define COMBINE_INTEGERS(name, type)                                                               \
    static void combine_##name(enum op op, void *a, const void *b)                                 \
    {                                                                                              \
        type x, y, *out = a;                                                                       \
        memcpy(&x, a, sizeof x);                                                                   \
        memcpy(&y, b, sizeof y);                                                                   \
        switch (op) {                                                                              \
        case SUM:                                                                                  \
            *out = (type)((uint64_t)x + (uint64_t)y);                                              \
            break;                                                                                 \
        case PROD:                                                                                 \
            *out = (type)((uint64_t)x * (uint64_t)y);                                              \
            break;                                                                                 \
        case MAX:                                                                                  \
            *out = x > y ? x : y;                                                                  \
            break;                                                                                 \
        case MIN:                                                                                  \
            *out = x < y ? x : y;                                                                  \
            break;                                                                                 \
        case BAND:                                                                                 \
            *out = (type)(x & y);                                                                  \
            break;                                                                                 \
        case BOR:                                                                                  \
            *out = (type)(x | y);                                                                  \
            break;                                                                                 \
        case BXOR:                                                                                 \
            *out = (type)(x ^ y);                                                                  \
            break;                                                                                 \
        case LAND:                                                                                 \
            *out = x && y;                                                                         \
            break;                                                                                 \
        case LOR:                                                                                  \
            *out = x || y;                                                                         \
            break;                                                                                 \
        default:                                                                                   \
            *out = !x != !y;                                                                       \
        }                                                                                          \
    }
COMBINE_INTEGERS(i8, int8_t)
COMBINE_INTEGERS(i16, int16_t)
COMBINE_INTEGERS(i32, int32_t)
COMBINE_INTEGERS(i64, int64_t)
COMBINE_INTEGERS(u8, uint8_t)
COMBINE_INTEGERS(u16, uint16_t)
COMBINE_INTEGERS(u32, uint32_t)
COMBINE_INTEGERS(u64, uint64_t)

#define COMBINE_FLOATING(name, type)                                                               \
    static void combine_##name(enum op op, void *a, const void *b)                                 \
    {                                                                                              \
        type x = *(type *)a, y = *(const type *)b, greater = x > y ? x : y;                        \
        type results[] = {                                                                         \
            [SUM] = x + y, [PROD] = x * y, [MAX] = greater, [MIN] = x + y - greater};              \
        *(type *)a = results[op];                                                                  \
    }                                                                                              \
    static void combine_complex_##name(enum op op, void *a, const void *b)                         \
    {                                                                                              \
        type *x = a;                                                                               \
        const type *y = b;                                                                         \
        type real = op == SUM ? x[0] + y[0] : x[0] * y[0] - x[1] * y[1];                           \
        type imaginary = op == SUM ? x[1] + y[1] : x[0] * y[1] + x[1] * y[0];                      \
        x[0] = real, x[1] = imaginary;                                                             \
    }
COMBINE_FLOATING(f32, float)
COMBINE_FLOATING(f64, double)

struct type {
    const char *name;
    MPI_Datatype type;
    combine *combine;
    unsigned ops;
    int floating; /* bytes of its parts, which are small whole numbers; 0: any bits */
};

static void fill(const struct type *t, int bytes, int rank, enum op op, char *out)
{
    uint64_t seed = (uint64_t)(rank * 100 + (int)op);
    int parts = t->floating ? COUNT * bytes / t->floating : 0;
    for (int i = 0; i < COUNT * bytes; i++)
        out[i] = (char)check_random(&seed);
    for (int i = 0; i < parts; i++) {
        int value = (int)(check_random(&seed) % 9) - 4;
        if (t->floating == 4)
            ((float *)out)[i] = (float)value;
        else
            ((double *)out)[i] = value;
    }
    /* Logical operations: any number is true, and some are false. */
    for (int i = 0; i < (op >= LAND ? COUNT : 0); i++) {
        if (check_random(&seed) % 2)
            memset(out + i * bytes, 0, (size_t)bytes);
    }
    if (t->type == MPI_C_BOOL) {
        for (int i = 0; i < COUNT; i++)
            out[i] = out[i] != 0;
    }
}

/* The combined inputs of the ranks before `end`. */
static void expect(const struct type *t, int bytes, enum op op, int end, char *out)
{
    char other[COUNT * MAX_BYTES];
    fill(t, bytes, 0, op, out);
    for (int r = 1; r < end; r++) {
        fill(t, bytes, r, op, other);
        for (int i = 0; i < COUNT; i++)
            t->combine(op, out + i * bytes, other + i * bytes);
    }
}

/* Zeros of both signs are equal: the sign of a product's zero depends on the order. */
static bool is_same(const struct type *t, const void *a, const void *b, size_t bytes)
{
    if (!t->floating)
        return memcmp(a, b, bytes) == 0;
    for (size_t i = 0; i < bytes / (size_t)t->floating; i++) {
        bool same = t->floating == 4 ? ((const float *)a)[i] == ((const float *)b)[i]
                                     : ((const double *)a)[i] == ((const double *)b)[i];
        if (!same)
            return false;
    }
    return true;
}

static void compare(const struct type *t, int op, const char *collective, const void *a,
                    const void *b, size_t bytes)
{
    if (is_same(t, a, b, bytes))
        return;
    printf("rank %d: %s of %s, operation %d, is wrong\n", check_rank, collective, t->name, op);
    check_failures++;
}

static void check_one(const struct type *t, enum op op)
{
    static _Alignas(16) char in[COUNT * MAX_BYTES], want[COUNT * MAX_BYTES], out[COUNT * MAX_BYTES];
    int bytes, root = (int)op % check_size, each = COUNT / check_size;
    MPI_Request request;
    MPI_Type_size(t->type, &bytes);
    size_t all = (size_t)(COUNT * bytes), block = (size_t)(each * bytes);
    fill(t, bytes, check_rank, op, in);
    expect(t, bytes, op, check_size, want);
    MPI_Allreduce(in, out, COUNT, t->type, handles[op], MPI_COMM_WORLD);
    compare(t, op, "allreduce", out, want, all);
    memcpy(out, in, all);
    MPI_Iallreduce(MPI_IN_PLACE, out, COUNT, t->type, handles[op], MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    compare(t, op, "non-blocking allreduce", out, want, all);
    MPI_Reduce(in, out, COUNT, t->type, handles[op], root, MPI_COMM_WORLD);
    if (check_rank == root)
        compare(t, op, "reduce", out, want, all);
    MPI_Reduce_scatter_block(in, out, each, t->type, handles[op], MPI_COMM_WORLD);
    compare(t, op, "reduce_scatter", out, want + (size_t)check_rank * block, block);
    if (op >= LAND) /* not scans: their first rank keeps its input as it is, see docs/mpi.md */
        return;
    expect(t, bytes, op, check_rank + 1, want);
    MPI_Scan(in, out, COUNT, t->type, handles[op], MPI_COMM_WORLD);
    compare(t, op, "scan", out, want, all);
    memcpy(out, in, all);
    MPI_Iscan(MPI_IN_PLACE, out, COUNT, t->type, handles[op], MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    compare(t, op, "non-blocking scan", out, want, all);
    memset(out, 0x5a, all);
    memset(want, 0x5a, all); /* rank 0 has no result */
    if (check_rank > 0)
        expect(t, bytes, op, check_rank, want);
    MPI_Exscan(in, out, COUNT, t->type, handles[op], MPI_COMM_WORLD);
    compare(t, op, "exscan", out, want, all);
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv);
    const MPI_Op ops[OPS] = {MPI_SUM, MPI_PROD, MPI_MAX,  MPI_MIN, MPI_BAND,
                             MPI_BOR, MPI_BXOR, MPI_LAND, MPI_LOR, MPI_LXOR};
    const unsigned integer = ARITHMETIC | ORDER | BITS | LOGIC;
    const struct type types[] = {
        {"signed char", MPI_SIGNED_CHAR, combine_i8, integer, 0},
        {"unsigned char", MPI_UNSIGNED_CHAR, combine_u8, integer, 0},
        {"short", MPI_SHORT, combine_i16, integer, 0},
        {"unsigned short", MPI_UNSIGNED_SHORT, combine_u16, integer, 0},
        {"int", MPI_INT, combine_i32, integer, 0},
        {"unsigned", MPI_UNSIGNED, combine_u32, integer, 0},
        {"long", MPI_LONG, combine_i64, integer, 0},
        {"unsigned long", MPI_UNSIGNED_LONG, combine_u64, integer, 0},
        {"long long", MPI_LONG_LONG, combine_i64, integer, 0},
        {"unsigned long long", MPI_UNSIGNED_LONG_LONG, combine_u64, integer, 0},
        {"int8_t", MPI_INT8_T, combine_i8, integer, 0},
        {"int16_t", MPI_INT16_T, combine_i16, integer, 0},
        {"int32_t", MPI_INT32_T, combine_i32, integer, 0},
        {"int64_t", MPI_INT64_T, combine_i64, integer, 0},
        {"uint8_t", MPI_UINT8_T, combine_u8, integer, 0},
        {"uint16_t", MPI_UINT16_T, combine_u16, integer, 0},
        {"uint32_t", MPI_UINT32_T, combine_u32, integer, 0},
        {"uint64_t", MPI_UINT64_T, combine_u64, integer, 0},
        {"address", MPI_AINT, combine_i64, integer, 0},
        {"offset", MPI_OFFSET, combine_i64, integer, 0},
        {"count", MPI_COUNT, combine_i64, integer, 0},
        {"byte", MPI_BYTE, combine_u8, BITS, 0},
        {"bool", MPI_C_BOOL, combine_u8, LOGIC, 0},
        {"float", MPI_FLOAT, combine_f32, ARITHMETIC | ORDER, 4},
        {"double", MPI_DOUBLE, combine_f64, ARITHMETIC | ORDER, 8},
        {"float complex", MPI_C_FLOAT_COMPLEX, combine_complex_f32, ARITHMETIC, 4},
        {"double complex", MPI_C_DOUBLE_COMPLEX, combine_complex_f64, ARITHMETIC, 8},
    };
    memcpy(handles, ops, sizeof handles);
    for (int i = 0; i < 2; i++) { /* until Peal takes non-blocking calls too */
        MPI_Request request;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (int op = 0; op < OPS; op++) {
            if (types[t].ops >> op & 1)
                check_one(&types[t], (enum op)op);
        }
    }
    printf("rank %d has tried every operation\n", check_rank);
    return check_end();
}
