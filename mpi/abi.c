/* SPDX-License-Identifier: Apache-2.0 */
/* See abi.h. Everything here happens once, at the program's first call. */
#include "abi.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct peal_mpi_abi the_abi;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- where the MPI is ---- */

static bool is_mpi(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpich.so", 11) == 0;
}

static int note_mpi(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    if (!info->dlpi_name || !is_mpi(info->dlpi_name))
        return 0;
    *(void **)context = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return 1;
}

/* An interpreter loads the MPI for one of its modules only, where RTLD_NEXT does not look. */
static void *open_loaded(void)
{
    void *library = NULL;
    dl_iterate_phdr(note_mpi, &library);
    return library;
}

static void *find_in_library(const char *name)
{
    static void *library;
    if (!library)
        library = open_loaded();
    return library ? dlsym(library, name) : NULL;
}

void *peal_mpi_find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    return found ? found : find_in_library(name);
}

/* An object: a program that names it may have the one that counts, copied out of the library. */
static void *find_object(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found ? found : find_in_library(name);
}

static void fill_functions(struct peal_mpi_functions *out)
{
    *(void **)&out->Comm_f2c = peal_mpi_find("PMPI_Comm_f2c");
    *(void **)&out->Type_f2c = peal_mpi_find("PMPI_Type_f2c");
    *(void **)&out->Op_f2c = peal_mpi_find("PMPI_Op_f2c");
    *(void **)&out->Request_f2c = peal_mpi_find("PMPI_Request_f2c");
    *(void **)&out->Request_c2f = peal_mpi_find("PMPI_Request_c2f");
#define PMPI(name, ...)                                                                            \
    *(void **)&out->name = peal_mpi_find("PMPI_" #name);                                           \
    if (!out->name) {                                                                              \
        fprintf(stderr, "libpeal_mpi: this process has no MPI with 'PMPI_%s'\n", #name);           \
        abort();                                                                                   \
    }
#include "pmpi.def"
#undef PMPI
}

/* ---- constants ---- */

static void *number(uint32_t value)
{
    return (void *)(uintptr_t)value;
}

static const struct {
    uint32_t mpich;
    const char *open_mpi;
} ops[PEAL_MPI_OPS] = {
    [PEAL_MPI_MAX] = {0x58000001, "ompi_mpi_op_max"},
    [PEAL_MPI_MIN] = {0x58000002, "ompi_mpi_op_min"},
    [PEAL_MPI_SUM] = {0x58000003, "ompi_mpi_op_sum"},
    [PEAL_MPI_PROD] = {0x58000004, "ompi_mpi_op_prod"},
    [PEAL_MPI_LAND] = {0x58000005, "ompi_mpi_op_land"},
    [PEAL_MPI_BAND] = {0x58000006, "ompi_mpi_op_band"},
    [PEAL_MPI_LOR] = {0x58000007, "ompi_mpi_op_lor"},
    [PEAL_MPI_BOR] = {0x58000008, "ompi_mpi_op_bor"},
    [PEAL_MPI_LXOR] = {0x58000009, "ompi_mpi_op_lxor"},
    [PEAL_MPI_BXOR] = {0x5800000a, "ompi_mpi_op_bxor"},
    [PEAL_MPI_MINLOC] = {0x5800000b, "ompi_mpi_op_minloc"},
    [PEAL_MPI_MAXLOC] = {0x5800000c, "ompi_mpi_op_maxloc"},
};

static void fill_open_mpi(struct peal_mpi_abi *out)
{
    out->name = "Open MPI";
    out->in_place = (void *)1;
    out->comm_world = find_object("ompi_mpi_comm_world");
    out->comm_null = find_object("ompi_mpi_comm_null");
    out->comm_self = find_object("ompi_mpi_comm_self");
    out->type_null = find_object("ompi_mpi_datatype_null");
    out->byte = find_object("ompi_mpi_byte");
    out->uint64 = find_object("ompi_mpi_uint64_t");
    out->op_null = find_object("ompi_mpi_op_null");
    out->max_error_string = 256;
    for (int i = 0; i < PEAL_MPI_OPS; i++)
        out->ops[i] = find_object(ops[i].open_mpi);
}

static void fill_mpich(struct peal_mpi_abi *out)
{
    out->name = "MPICH";
    out->int_handles = true;
    out->refuses_aliases = true;
    out->in_place = (void *)-1;
    out->comm_world = number(0x44000000);
    out->comm_null = number(0x04000000);
    out->comm_self = number(0x44000001);
    out->type_null = number(0x0c000000);
    out->byte = number(0x4c00010d);
    out->uint64 = number(0x4c00083e);
    out->op_null = number(0x18000000);
    out->max_error_string = 512;
    for (int i = 0; i < PEAL_MPI_OPS; i++)
        out->ops[i] = number(ops[i].mpich);
}

/* ---- types ---- */

enum kind {
    KIND_OPAQUE,
    KIND_SIGNED,
    KIND_UNSIGNED,
    KIND_FLOATING,
    KIND_COMPLEX,
    KIND_LOGICAL,
    KIND_BITS
};
enum { ARITHMETIC = 1, ORDER = 2, BITWISE = 4, LOGICAL = 8, ONLY_SUM = 16 };

static const struct {
    uint8_t group; /* of the operation: it is in one, and a sum in two */
    enum peal_reduction reduce;
} op_groups[PEAL_MPI_OPS] = {
    [PEAL_MPI_MAX] = {ORDER, PEAL_MAX},        [PEAL_MPI_MIN] = {ORDER, PEAL_MIN},
    [PEAL_MPI_PROD] = {ARITHMETIC, PEAL_PROD}, [PEAL_MPI_SUM] = {ARITHMETIC | ONLY_SUM, PEAL_SUM},
    [PEAL_MPI_LAND] = {LOGICAL, PEAL_AND},     [PEAL_MPI_BAND] = {BITWISE, PEAL_AND},
    [PEAL_MPI_LOR] = {LOGICAL, PEAL_OR},       [PEAL_MPI_BOR] = {BITWISE, PEAL_OR},
    [PEAL_MPI_LXOR] = {LOGICAL, PEAL_XOR},     [PEAL_MPI_BXOR] = {BITWISE, PEAL_XOR},
};

static const struct {
    enum kind kind;
    uint32_t bytes;
    enum peal_dtype dtype;
    uint32_t parts;
    uint8_t groups;
} reductions[] = {
#define REDUCTION(kind, bytes, dtype, parts, groups) {KIND_##kind, bytes, dtype, parts, groups},
#include "reductions.def"
#undef REDUCTION
};

static const struct {
    const char *name;
    uint32_t mpich;
    const char *open_mpi;
    uint32_t bytes;
    enum kind kind;
} rows[] = {
#define TYPE(name, mpich, symbol, bytes, kind)                                                     \
    {"MPI_" #name, mpich, "ompi_mpi_" #symbol, bytes, KIND_##kind},
#include "types.def"
#undef TYPE
};

enum { ROWS = sizeof rows / sizeof *rows, PLACES = 256 };
static struct peal_mpi_type types[ROWS];
static const struct peal_mpi_type *places[PLACES]; /* types by handle, the next free place taken */

static uint32_t place_of(const void *handle)
{
    uint64_t value = (uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(value >> 56);
}

static void fill_reductions(enum kind kind, struct peal_mpi_type *type)
{
    for (int op = 0; op < PEAL_MPI_OPS; op++) {
        for (size_t r = 0; r < sizeof reductions / sizeof *reductions; r++) {
            if (reductions[r].kind != kind || reductions[r].bytes != type->bytes)
                continue;
            if (!(reductions[r].groups & op_groups[op].group))
                continue;
            type->reductions[op] =
                (struct peal_mpi_reduction){.dtype = reductions[r].dtype,
                                            .reduce = op_groups[op].reduce,
                                            .parts = reductions[r].parts,
                                            .logical = op_groups[op].group == LOGICAL};
            break;
        }
    }
}

static void fill_types(const struct peal_mpi_abi *abi)
{
    for (size_t i = 0; i < ROWS; i++) {
        void *handle = abi->int_handles ? number(rows[i].mpich) : find_object(rows[i].open_mpi);
        if (!handle)
            continue; /* this MPI has none */
        types[i] = (struct peal_mpi_type){handle, rows[i].name, rows[i].bytes, {{0}}};
        fill_reductions(rows[i].kind, &types[i]);
        uint32_t place = place_of(handle);
        while (places[place])
            place = (place + 1) % PLACES;
        places[place] = &types[i];
    }
}

static void find_mpi(void)
{
    if (find_object("ompi_mpi_comm_world"))
        fill_open_mpi(&the_abi);
    else
        fill_mpich(&the_abi);
    the_abi.op_min = the_abi.ops[PEAL_MPI_MIN];
    fill_functions(&the_abi.pmpi);
    fill_types(&the_abi);
}

const struct peal_mpi_abi *peal_mpi(void)
{
    pthread_once(&once, find_mpi);
    return &the_abi;
}

const struct peal_mpi_type *peal_mpi_type_find(void *handle)
{
    uint32_t place = place_of(handle);
    while (places[place] && places[place]->handle != handle)
        place = (place + 1) % PLACES;
    return places[place];
}

enum peal_mpi_op peal_mpi_op_find(void *handle)
{
    for (int op = 0; op < PEAL_MPI_OPS; op++) {
        if (the_abi.ops[op] == handle)
            return (enum peal_mpi_op)op;
    }
    return PEAL_MPI_OPS;
}
