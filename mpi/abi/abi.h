/* SPDX-License-Identifier: Apache-2.0 */
/* mpi: runs the collectives of unchanged MPI programs through Peal, in a library that is preloaded.
 *
 *     program ── MPI_X ──▶ entry/: entry.c, requests.c, waits.c, fortran.c
 *                              │
 *                          take/: does Peal take this call? take.c, agree.c, attach.c, judge.c
 *                              │
 *                   no ◀───────┴─ yes ─▶ job/: Peal's arguments, packed data ─▶ libpeal
 *        PMPI_X of the MPI
 *
 * One binary serves Open MPI, MPICH and any MPI with the standard ABI of MPI 5. It is built without
 * them: no mpi.h is included. Handles are ints in MPICH and pointers in the others. Both are passed
 * in integer registers, so every handle is a `void *` here, and peal_mpi_handle() clears the upper
 * half of a register that holds an int. Constants are numbers (MPICH, the standard) or addresses of
 * the library's symbols (Open MPI); abi/abi.c has all three, and chooses by the name and the symbols of
 * the MPI that is loaded. This library calls the MPI only by its PMPI_ names.
 *
 * The rule of this folder: whether Peal takes a call may depend only on what is equal on all ranks
 * of the communicator. Datatypes need not be (only their signatures), so no call that only moves
 * data is left to the MPI because of its datatype: data that is not contiguous is packed. A
 * reduction may be, because its datatype and operation are the same on all ranks. docs/mpi.md has
 * the rest.
 */
#ifndef PEAL_MPI_ABI_H
#define PEAL_MPI_ABI_H

#include "calls.h"

#include <peal/peal.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libpeal_mpi.so exports names of MPI functions, and nothing else. */
#define PEAL_MPI_EXPORT __attribute__((visibility("default")))

/* The same in all three ABIs. */
enum { PEAL_MPI_SUCCESS = 0, PEAL_MPI_UNDEFINED = -32766 };

/* Predefined operations; indices of peal_mpi_type.reductions and peal_mpi_abi.ops. */
enum peal_mpi_op {
    PEAL_MPI_MAX,
    PEAL_MPI_MIN,
    PEAL_MPI_SUM,
    PEAL_MPI_PROD,
    PEAL_MPI_LAND,
    PEAL_MPI_BAND,
    PEAL_MPI_LOR,
    PEAL_MPI_BOR,
    PEAL_MPI_LXOR,
    PEAL_MPI_BXOR,
    PEAL_MPI_MINLOC,
    PEAL_MPI_MAXLOC,
    PEAL_MPI_OPS /* their number; as a result: an operation of the program */
};

/* How Peal computes an operation on a type. */
struct peal_mpi_reduction {
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    uint32_t parts; /* of type `dtype` in an element; 0: Peal cannot compute it */
    bool logical;   /* inputs are made 0 or 1 first */
};

/* A predefined type without holes: packing would not change it. */
struct peal_mpi_type {
    void *handle;
    const char *name;
    uint32_t bytes;
    struct peal_mpi_reduction reductions[PEAL_MPI_OPS];
};

/* The functions of the MPI that this library calls: calls.def and pmpi.def. */
struct peal_mpi_functions {
#define CALL(name, start, lower, istart, which, shape)                                             \
    int (*name)(shape##_C);                                                                        \
    int (*start)(shape##_C, void *request);
#define COUNTED CALL
#include "calls.def"
#undef COUNTED
#undef CALL
#define PMPI(name, ...) int (*name)(__VA_ARGS__);
#include "pmpi.def"
#undef PMPI
    /* For Open MPI, whose handles are numbers in Fortran and pointers in C. */
    void *(*Comm_f2c)(int);
    void *(*Type_f2c)(int);
    void *(*Op_f2c)(int);
    int (*Request_c2f)(void *);
};

enum peal_mpi_flavour { PEAL_MPI_OPEN, PEAL_MPI_MPICH, PEAL_MPI_STANDARD };

/* A predefined handle: a number, or the symbol whose address it is. */
struct peal_mpi_constant {
    uint32_t mpich, standard;
    const char *open_mpi;
};

struct peal_mpi_abi {
    const char *name;
    enum peal_mpi_flavour flavour;
    bool int_handles;     /* MPICH */
    bool refuses_aliases; /* reports an error if the send buffer is the receive buffer */
    void *in_place;
    void *comm_null, *comm_world, *comm_self;
    void *type_null, *byte, *uint64;
    void *op_null, *op_min;
    size_t max_error_string;
    int thread_multiple; /* the value of MPI_THREAD_MULTIPLE */
    void *ops[PEAL_MPI_OPS];
    struct peal_mpi_functions pmpi;
};

/* What peal_mpi() returns; NULL before its first call. */
extern const struct peal_mpi_abi *_Atomic peal_mpi_found;
const struct peal_mpi_abi *peal_mpi_find_own(void);

/* The MPI of this process, found at the first call. Ends the process with a message if there is
 * none, because a program that calls MPI_X cannot go on without an MPI. Inline, because a
 * collective of 8 bytes takes no longer than ten function calls. */
static inline const struct peal_mpi_abi *peal_mpi(void)
{
    /* Acquire; partner: peal_mpi_find_own. */
    const struct peal_mpi_abi *found = atomic_load_explicit(&peal_mpi_found, memory_order_acquire);
    return found ? found : peal_mpi_find_own();
}

/* The MPI's function of this name; NULL if it has none. */
void *peal_mpi_find(const char *name);

/* The handle in this MPI; NULL if it has none. */
void *peal_mpi_constant(const struct peal_mpi_constant *constant);

/* The handle in a form that can be compared: the upper half of an int's register is undefined. */
static inline void *peal_mpi_handle(const struct peal_mpi_abi *abi, void *handle)
{
    return abi->int_handles ? (void *)(uintptr_t)(uint32_t)(uintptr_t)handle : handle;
}

/* The handle that the MPI has stored at `at`. */
static inline void *peal_mpi_load(const struct peal_mpi_abi *abi, const void *at)
{
    return abi->int_handles ? (void *)(uintptr_t) * (const uint32_t *)at : *(void *const *)at;
}

/* A hash table of the predefined types: each is at the place of its handle, or at the next free
 * one. */
enum { PEAL_MPI_PLACES = 256 };
extern const struct peal_mpi_type *peal_mpi_types[PEAL_MPI_PLACES];

static inline uint32_t peal_mpi_place_of(const void *handle)
{
    uint64_t value = (uintptr_t)handle * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(value >> 56);
}

/* NULL for derived types and those with holes. */
static inline const struct peal_mpi_type *peal_mpi_type_find(const void *handle)
{
    uint32_t place = peal_mpi_place_of(handle);
    while (peal_mpi_types[place] && peal_mpi_types[place]->handle != handle)
        place = (place + 1) % PEAL_MPI_PLACES;
    return peal_mpi_types[place];
}

/* PEAL_MPI_OPS for any operation that is not predefined. */
enum peal_mpi_op peal_mpi_op_find(void *handle);

#endif
