/* SPDX-License-Identifier: Apache-2.0 */
/* See pairs.h. */
#include "pairs.h"

#include <pthread.h>

/* Peal's pairs, by name. */
struct PEAL_F64_I64_parts {
    double value;
    int64_t index;
};
struct PEAL_I64_I64_parts {
    int64_t value;
    int64_t index;
};
struct PEAL_I32_I32_parts {
    int32_t value;
    int32_t index;
};

#define PAIR(name, mpich, standard, symbol, type, dtype)                                           \
    struct symbol##_parts {                                                                        \
        type value;                                                                                \
        int index;                                                                                 \
    };                                                                                             \
    static void widen_##symbol(const void *from, uint64_t count, void *to)                         \
    {                                                                                              \
        const struct symbol##_parts *in = from;                                                    \
        struct dtype##_parts *out = to;                                                            \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            out[i].value = in[i].value;                                                            \
            out[i].index = in[i].index;                                                            \
        }                                                                                          \
    }                                                                                              \
    static void narrow_##symbol(const void *from, uint64_t count, void *to)                        \
    {                                                                                              \
        const struct dtype##_parts *in = from;                                                     \
        struct symbol##_parts *out = to;                                                           \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            out[i].value = (type)in[i].value;                                                      \
            out[i].index = (int)in[i].index;                                                       \
        }                                                                                          \
    }
#include "pairs.def"
#undef PAIR

static const struct {
    struct peal_mpi_constant constant;
    struct peal_mpi_pair pair;
} rows[] = {
#define PAIR(name, mpich, standard, symbol, type, dtype)                                           \
    {{mpich, standard, "ompi_mpi_" #symbol},                                                       \
     {NULL,                                                                                        \
      sizeof(type) + sizeof(int),                                                                  \
      sizeof(struct symbol##_parts),                                                               \
      sizeof(struct dtype##_parts),                                                                \
      {dtype, PEAL_MINLOC, 1, false},                                                              \
      {dtype, PEAL_MAXLOC, 1, false},                                                              \
      widen_##symbol,                                                                              \
      narrow_##symbol}},
#include "pairs.def"
#undef PAIR
};

enum { ROWS = sizeof rows / sizeof *rows };
static struct peal_mpi_pair pairs[ROWS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_pairs(void)
{
    for (int i = 0; i < ROWS; i++) {
        pairs[i] = rows[i].pair;
        pairs[i].handle = peal_mpi_constant(&rows[i].constant);
    }
}

const struct peal_mpi_pair *peal_mpi_pair_find(void *handle)
{
    pthread_once(&once, fill_pairs);
    for (int i = 0; i < ROWS; i++) {
        if (handle && pairs[i].handle == handle)
            return &pairs[i];
    }
    return NULL;
}
