/* SPDX-License-Identifier: Apache-2.0 */
/* See abi.h. Everything here runs once, at the program's first call. */
#include "abi.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct peal_mpi_abi *_Atomic peal_mpi_found;
static struct peal_mpi_abi the_abi;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- where the MPI is ---- */

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* libmpi_abi.so, or libmpi_abi_NAME.so, where NAME is the implementation. */
static bool is_standard(const char *name)
{
    return strncmp(name, "libmpi_abi", 10) == 0;
}

static bool is_mpi(const char *path)
{
    const char *name = name_of(path);
    return strncmp(name, "libmpi.so", 9) == 0 || strncmp(name, "libmpich.so", 11) == 0 ||
           is_standard(name);
}

static int note_mpi(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    if (!info->dlpi_name || !is_mpi(info->dlpi_name))
        return 0;
    *(void **)context = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    return 1;
}

/* An interpreter may load the MPI for one of its modules only, where RTLD_NEXT does not search. */
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

/* The program may have a copy of a library's object (a copy relocation), and then that copy
 * counts. */
static void *find_object(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    return found ? found : find_in_library(name);
}

static void *find_function(const char *name)
{
    void *found = peal_mpi_find(name);
    if (!found) {
        fprintf(stderr, "libpeal_mpi: this process has no MPI with '%s'\n", name);
        abort();
    }
    return found;
}

static void fill_functions(struct peal_mpi_functions *out)
{
    *(void **)&out->Comm_f2c = peal_mpi_find("PMPI_Comm_f2c");
    *(void **)&out->Type_f2c = peal_mpi_find("PMPI_Type_f2c");
    *(void **)&out->Op_f2c = peal_mpi_find("PMPI_Op_f2c");
    *(void **)&out->Request_c2f = peal_mpi_find("PMPI_Request_c2f");
#define CALL(name, start, lower, istart, which, shape)                                             \
    *(void **)&out->name = find_function("PMPI_" #name);                                           \
    *(void **)&out->start = find_function("PMPI_" #start);
#define COUNTED CALL
#include "calls.def"
#undef COUNTED
#undef CALL
#define PMPI(name, ...) *(void **)&out->name = find_function("PMPI_" #name);
#include "pmpi.def"
#undef PMPI
}

/* ---- constants ---- */

static void *number(uint32_t value)
{
    return (void *)(uintptr_t)value;
}

static const struct peal_mpi_constant ops[PEAL_MPI_OPS] = {
    [PEAL_MPI_MAX] = {0x58000001, 0x23, "ompi_mpi_op_max"},
    [PEAL_MPI_MIN] = {0x58000002, 0x22, "ompi_mpi_op_min"},
    [PEAL_MPI_SUM] = {0x58000003, 0x21, "ompi_mpi_op_sum"},
    [PEAL_MPI_PROD] = {0x58000004, 0x24, "ompi_mpi_op_prod"},
    [PEAL_MPI_LAND] = {0x58000005, 0x30, "ompi_mpi_op_land"},
    [PEAL_MPI_BAND] = {0x58000006, 0x28, "ompi_mpi_op_band"},
    [PEAL_MPI_LOR] = {0x58000007, 0x31, "ompi_mpi_op_lor"},
    [PEAL_MPI_BOR] = {0x58000008, 0x29, "ompi_mpi_op_bor"},
    [PEAL_MPI_LXOR] = {0x58000009, 0x32, "ompi_mpi_op_lxor"},
    [PEAL_MPI_BXOR] = {0x5800000a, 0x2a, "ompi_mpi_op_bxor"},
    [PEAL_MPI_MINLOC] = {0x5800000b, 0x38, "ompi_mpi_op_minloc"},
    [PEAL_MPI_MAXLOC] = {0x5800000c, 0x39, "ompi_mpi_op_maxloc"},
};

/* Other handles, and their members of struct peal_mpi_abi. */
static const struct {
    struct peal_mpi_constant constant;
    size_t at;
} handles[] = {
#define HANDLE(member, mpich, standard, symbol)                                                    \
    {                                                                                              \
        {mpich, standard, symbol}, offsetof(struct peal_mpi_abi, member)                           \
    }
    HANDLE(comm_null, 0x04000000, 0x100, "ompi_mpi_comm_null"),
    HANDLE(comm_world, 0x44000000, 0x101, "ompi_mpi_comm_world"),
    HANDLE(comm_self, 0x44000001, 0x102, "ompi_mpi_comm_self"),
    HANDLE(type_null, 0x0c000000, 0x200, "ompi_mpi_datatype_null"),
    HANDLE(byte, 0x4c00010d, 0x247, "ompi_mpi_byte"),
    HANDLE(uint64, 0x4c00083e, 0x259, "ompi_mpi_uint64_t"),
    HANDLE(op_null, 0x18000000, 0x20, "ompi_mpi_op_null"),
    HANDLE(op_min, 0x58000002, 0x22, "ompi_mpi_op_min"),
#undef HANDLE
};

/* Members that are not handles. Some MPIs with the standard ABI refuse aliases, so it is assumed of
 * all. */
static const struct peal_mpi_abi flavours[] = {
    [PEAL_MPI_OPEN] = {.name = "Open MPI",
                       .in_place = (void *)1,
                       .max_error_string = 256,
                       .thread_multiple = 3},
    [PEAL_MPI_MPICH] = {.name = "MPICH",
                        .in_place = (void *)-1,
                        .int_handles = true,
                        .refuses_aliases = true,
                        .max_error_string = 512,
                        .thread_multiple = 3},
    [PEAL_MPI_STANDARD] = {.name = "an MPI with the standard ABI",
                           .in_place = (void *)1,
                           .refuses_aliases = true,
                           .max_error_string = 512,
                           .thread_multiple = 4096},
};

/* In the standard ABI handles are pointers, and predefined ones have small numbers as their
 * value. */
static void *find_constant(const struct peal_mpi_abi *abi, const struct peal_mpi_constant *constant)
{
    switch (abi->flavour) {
    case PEAL_MPI_MPICH:
        return number(constant->mpich);
    case PEAL_MPI_STANDARD:
        return number(constant->standard);
    default:
        return find_object(constant->open_mpi);
    }
}

static void fill_constants(enum peal_mpi_flavour flavour, struct peal_mpi_abi *out)
{
    *out = flavours[flavour];
    out->flavour = flavour;
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++)
        *(void **)((char *)out + handles[i].at) = find_constant(out, &handles[i].constant);
    for (int i = 0; i < PEAL_MPI_OPS; i++)
        out->ops[i] = find_constant(out, &ops[i]);
}

/* ---- types ---- */

enum kind {
    KIND_OPAQUE,
    KIND_SIGNED,
    KIND_UNSIGNED,
    KIND_FLOATING,
    KIND_COMPLEX,
    KIND_LOGICAL,
    KIND_BITS,
    KIND_FLOATING_PAIR,
    KIND_SIGNED_PAIR
};
enum { ARITHMETIC = 1, ORDER = 2, BITWISE = 4, LOGICAL = 8, ONLY_SUM = 16, PLACE = 32 };

static const struct {
    uint8_t group; /* the operation's; a sum is in two */
    enum peal_reduction reduce;
} op_groups[PEAL_MPI_OPS] = {
    [PEAL_MPI_MAX] = {ORDER, PEAL_MAX},        [PEAL_MPI_MIN] = {ORDER, PEAL_MIN},
    [PEAL_MPI_PROD] = {ARITHMETIC, PEAL_PROD}, [PEAL_MPI_SUM] = {ARITHMETIC | ONLY_SUM, PEAL_SUM},
    [PEAL_MPI_LAND] = {LOGICAL, PEAL_AND},     [PEAL_MPI_BAND] = {BITWISE, PEAL_AND},
    [PEAL_MPI_LOR] = {LOGICAL, PEAL_OR},       [PEAL_MPI_BOR] = {BITWISE, PEAL_OR},
    [PEAL_MPI_LXOR] = {LOGICAL, PEAL_XOR},     [PEAL_MPI_BXOR] = {BITWISE, PEAL_XOR},
    [PEAL_MPI_MINLOC] = {PLACE, PEAL_MINLOC},  [PEAL_MPI_MAXLOC] = {PLACE, PEAL_MAXLOC},
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
    struct peal_mpi_constant constant;
    uint32_t bytes;
    enum kind kind;
} rows[] = {
#define TYPE(name, mpich, standard, symbol, bytes, kind)                                           \
    {"MPI_" #name, {mpich, standard, "ompi_mpi_" #symbol}, bytes, KIND_##kind},
#include "types.def"
#undef TYPE
};

enum { ROWS = sizeof rows / sizeof *rows };
static struct peal_mpi_type types[ROWS];
const struct peal_mpi_type *peal_mpi_types[PEAL_MPI_PLACES];

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
        void *handle = find_constant(abi, &rows[i].constant);
        if (!handle)
            continue; /* this MPI has none */
        types[i] = (struct peal_mpi_type){handle, rows[i].name, rows[i].bytes, {{0}}};
        fill_reductions(rows[i].kind, &types[i]);
        uint32_t place = peal_mpi_place_of(handle);
        while (peal_mpi_types[place])
            place = (place + 1) % PEAL_MPI_PLACES;
        peal_mpi_types[place] = &types[i];
    }
}

/* Functions have the same names in all ABIs, so the name of the library decides. */
static bool has_standard(void)
{
    Dl_info info;
    void *function = peal_mpi_find("PMPI_Allreduce");
    return function && dladdr(function, &info) != 0 && is_standard(name_of(info.dli_fname));
}

static enum peal_mpi_flavour find_flavour(void)
{
    if (has_standard())
        return PEAL_MPI_STANDARD;
    return find_object("ompi_mpi_comm_world") ? PEAL_MPI_OPEN : PEAL_MPI_MPICH;
}

static void find_mpi(void)
{
    fill_constants(find_flavour(), &the_abi);
    fill_functions(&the_abi.pmpi);
    fill_types(&the_abi);
}

const struct peal_mpi_abi *peal_mpi_find_own(void)
{
    pthread_once(&once, find_mpi);
    /* Release: all of it is written; partner: peal_mpi. */
    atomic_store_explicit(&peal_mpi_found, &the_abi, memory_order_release);
    return &the_abi;
}

void *peal_mpi_constant(const struct peal_mpi_constant *constant)
{
    return find_constant(peal_mpi(), constant);
}

enum peal_mpi_op peal_mpi_op_find(void *handle)
{
    for (int op = 0; op < PEAL_MPI_OPS; op++) {
        if (the_abi.ops[op] == handle)
            return (enum peal_mpi_op)op;
    }
    return PEAL_MPI_OPS;
}
