/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of abi.c and types.def are those of this MPI's mpi.h. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

static int wrong;

static void compare(const char *name, uintptr_t expected, uintptr_t found)
{
    if (expected == found)
        return;
    printf("%s is %#lx, the table says %#lx\n", name, (unsigned long)expected,
           (unsigned long)found);
    wrong++;
}

#ifdef OPEN_MPI
#define PAIR(name, mpich, standard, symbol, type, dtype)                                           \
    extern char type_##symbol[] __asm__("ompi_mpi_" #symbol);
#include "job/pairs.def"
#undef PAIR
#define TYPE(name, mpich, standard, symbol, bytes, kind)                                           \
    extern char type_##symbol[] __asm__("ompi_mpi_" #symbol);
#include "abi/types.def"
#undef TYPE
#define HANDLE(mpich, standard, symbol) ((uintptr_t)type_##symbol)
#elif defined(MPI_ABI_VERSION)
#define HANDLE(mpich, standard, symbol) ((uintptr_t)(standard))
#define NUMBER(mpich, standard) (standard)
#else
#define HANDLE(mpich, standard, symbol) ((uintptr_t)(int)(mpich))
#define NUMBER(mpich, standard) (mpich)
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
#define TYPE(name, mpich, standard, symbol, count, kind)                                           \
    {                                                                                              \
        int size = 0;                                                                              \
        MPI_Aint lb = 0, extent = 0;                                                               \
        compare("MPI_" #name, (uintptr_t)MPI_##name, HANDLE(mpich, standard, symbol));             \
        MPI_Type_size(MPI_##name, &size);                                                          \
        MPI_Type_get_extent(MPI_##name, &lb, &extent);                                             \
        compare("size of MPI_" #name, (uintptr_t)size, count);                                     \
        compare("extent of MPI_" #name, (uintptr_t)extent, count);                                 \
        compare("start of MPI_" #name, (uintptr_t)lb, 0);                                          \
    }
#include "abi/types.def"
#define PAIR(name, mpich, standard, symbol, type, dtype)                                           \
    {                                                                                              \
        struct pair {                                                                              \
            type value;                                                                            \
            int index;                                                                             \
        };                                                                                         \
        int size = 0;                                                                              \
        MPI_Aint lb = 0, extent = 0;                                                               \
        compare("MPI_" #name, (uintptr_t)MPI_##name, HANDLE(mpich, standard, symbol));             \
        MPI_Type_size(MPI_##name, &size);                                                          \
        MPI_Type_get_extent(MPI_##name, &lb, &extent);                                             \
        compare("size of MPI_" #name, (uintptr_t)size, sizeof(type) + sizeof(int));                \
        compare("extent of MPI_" #name, (uintptr_t)extent, sizeof(struct pair));                   \
        compare("start of MPI_" #name, (uintptr_t)lb, 0);                                          \
    }
#include "job/pairs.def"
#ifdef OPEN_MPI
    compare("MPI_IN_PLACE", (uintptr_t)MPI_IN_PLACE, 1);
    compare("MPI_MAX_ERROR_STRING", MPI_MAX_ERROR_STRING, 256);
#else
    compare("MPI_IN_PLACE", (uintptr_t)MPI_IN_PLACE, NUMBER((uintptr_t)-1, 1));
    compare("MPI_MAX_ERROR_STRING", MPI_MAX_ERROR_STRING, 512);
    compare("MPI_COMM_WORLD", (uintptr_t)MPI_COMM_WORLD, NUMBER(0x44000000, 0x101));
    compare("MPI_COMM_SELF", (uintptr_t)MPI_COMM_SELF, NUMBER(0x44000001, 0x102));
    compare("MPI_COMM_NULL", (uintptr_t)MPI_COMM_NULL, NUMBER(0x04000000, 0x100));
    compare("MPI_DATATYPE_NULL", (uintptr_t)MPI_DATATYPE_NULL, NUMBER(0x0c000000, 0x200));
    compare("MPI_OP_NULL", (uintptr_t)MPI_OP_NULL, NUMBER(0x18000000, 0x20));
    compare("MPI_MAX", (uintptr_t)MPI_MAX, NUMBER(0x58000001, 0x23));
    compare("MPI_MIN", (uintptr_t)MPI_MIN, NUMBER(0x58000002, 0x22));
    compare("MPI_SUM", (uintptr_t)MPI_SUM, NUMBER(0x58000003, 0x21));
    compare("MPI_PROD", (uintptr_t)MPI_PROD, NUMBER(0x58000004, 0x24));
    compare("MPI_LAND", (uintptr_t)MPI_LAND, NUMBER(0x58000005, 0x30));
    compare("MPI_BAND", (uintptr_t)MPI_BAND, NUMBER(0x58000006, 0x28));
    compare("MPI_LOR", (uintptr_t)MPI_LOR, NUMBER(0x58000007, 0x31));
    compare("MPI_BOR", (uintptr_t)MPI_BOR, NUMBER(0x58000008, 0x29));
    compare("MPI_LXOR", (uintptr_t)MPI_LXOR, NUMBER(0x58000009, 0x32));
    compare("MPI_BXOR", (uintptr_t)MPI_BXOR, NUMBER(0x5800000a, 0x2a));
    compare("MPI_MINLOC", (uintptr_t)MPI_MINLOC, NUMBER(0x5800000b, 0x38));
    compare("MPI_MAXLOC", (uintptr_t)MPI_MAXLOC, NUMBER(0x5800000c, 0x39));
#endif
    compare("MPI_UNDEFINED", (uintptr_t)MPI_UNDEFINED, (uintptr_t)-32766);
    MPI_Finalize();
    return wrong != 0;
}
