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
#define TYPE(name, mpich, symbol, bytes, kind)                                                     \
    extern char type_##symbol[] __asm__("ompi_mpi_" #symbol);
#include "types.def"
#undef TYPE
#define HANDLE(mpich, symbol) ((uintptr_t)type_##symbol)
#else
#define HANDLE(mpich, symbol) ((uintptr_t)(int)(mpich))
#endif

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
#define TYPE(name, mpich, symbol, count, kind)                                                     \
    {                                                                                              \
        int size = 0;                                                                              \
        MPI_Aint lb = 0, extent = 0;                                                               \
        compare("MPI_" #name, (uintptr_t)MPI_##name, HANDLE(mpich, symbol));                       \
        MPI_Type_size(MPI_##name, &size);                                                          \
        MPI_Type_get_extent(MPI_##name, &lb, &extent);                                             \
        compare("size of MPI_" #name, (uintptr_t)size, count);                                     \
        compare("extent of MPI_" #name, (uintptr_t)extent, count);                                 \
        compare("start of MPI_" #name, (uintptr_t)lb, 0);                                          \
    }
#include "types.def"
#ifdef OPEN_MPI
    compare("MPI_IN_PLACE", (uintptr_t)MPI_IN_PLACE, 1);
    compare("MPI_MAX_ERROR_STRING", MPI_MAX_ERROR_STRING, 256);
#else
    compare("MPI_IN_PLACE", (uintptr_t)MPI_IN_PLACE, (uintptr_t)-1);
    compare("MPI_MAX_ERROR_STRING", MPI_MAX_ERROR_STRING, 512);
    compare("MPI_COMM_WORLD", (uintptr_t)MPI_COMM_WORLD, 0x44000000);
    compare("MPI_COMM_SELF", (uintptr_t)MPI_COMM_SELF, 0x44000001);
    compare("MPI_COMM_NULL", (uintptr_t)MPI_COMM_NULL, 0x04000000);
    compare("MPI_DATATYPE_NULL", (uintptr_t)MPI_DATATYPE_NULL, 0x0c000000);
    compare("MPI_OP_NULL", (uintptr_t)MPI_OP_NULL, 0x18000000);
    compare("MPI_MAX", (uintptr_t)MPI_MAX, 0x58000001);
    compare("MPI_MIN", (uintptr_t)MPI_MIN, 0x58000002);
    compare("MPI_SUM", (uintptr_t)MPI_SUM, 0x58000003);
    compare("MPI_PROD", (uintptr_t)MPI_PROD, 0x58000004);
    compare("MPI_LAND", (uintptr_t)MPI_LAND, 0x58000005);
    compare("MPI_BAND", (uintptr_t)MPI_BAND, 0x58000006);
    compare("MPI_LOR", (uintptr_t)MPI_LOR, 0x58000007);
    compare("MPI_BOR", (uintptr_t)MPI_BOR, 0x58000008);
    compare("MPI_LXOR", (uintptr_t)MPI_LXOR, 0x58000009);
    compare("MPI_BXOR", (uintptr_t)MPI_BXOR, 0x5800000a);
    compare("MPI_MINLOC", (uintptr_t)MPI_MINLOC, 0x5800000b);
    compare("MPI_MAXLOC", (uintptr_t)MPI_MAXLOC, 0x5800000c);
#endif
    compare("MPI_UNDEFINED", (uintptr_t)MPI_UNDEFINED, (uintptr_t)-32766);
    MPI_Finalize();
    return wrong != 0;
}
