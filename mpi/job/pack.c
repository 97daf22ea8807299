/* SPDX-License-Identifier: Apache-2.0 */
/* See pack.h. A predefined type without holes is copied. The MPI packs all others, even those whose
 * size is their extent, because their parts may be in another order. */
#include "pack.h"

#include <string.h>

/* MPI_Pack counts bytes in an int, so larger data is packed in parts. */
enum { TURN_BYTES = 1 << 30 };

enum direction { PACK, UNPACK };

void peal_mpi_shape_get(void *type, struct peal_mpi_shape *out)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    const struct peal_mpi_type *known = peal_mpi_type_find(peal_mpi_handle(abi, type));
    if (known) {
        *out = (struct peal_mpi_shape){known->bytes, (int64_t)known->bytes, true};
        return;
    }
    int64_t bytes = 0;
    intptr_t lb = 0, extent = 0;
    abi->pmpi.Type_size_x(type, &bytes);
    abi->pmpi.Type_get_extent(type, &lb, &extent);
    *out = (struct peal_mpi_shape){bytes > 0 ? (uint64_t)bytes : 0, extent, false};
}

/* Elements of one part. */
static int count_part(int left, uint64_t bytes)
{
    uint64_t fitting = TURN_BYTES / bytes;
    if (fitting == 0)
        fitting = 1;
    return (uint64_t)left < fitting ? left : (int)fitting;
}

/* One part, by the MPI. */
static bool move_part(enum direction direction, char *memory, char *packed, int count, int bytes,
                      void *type, void *comm)
{
    const struct peal_mpi_functions *pmpi = &peal_mpi()->pmpi;
    int position = 0, code;
    if (direction == PACK)
        code = pmpi->Pack(memory, count, type, packed, bytes, &position, comm);
    else
        code = pmpi->Unpack(packed, bytes, &position, memory, count, type, comm);
    return code == PEAL_MPI_SUCCESS;
}

/* MPICH refuses to pack from MPI_BOTTOM. So the type is moved by an offset, and the buffer the
 * other way. */
static bool part_at_bottom(enum direction direction, char *packed, int count, int bytes, void *type,
                           void *comm)
{
    static char base;
    const struct peal_mpi_abi *abi = peal_mpi();
    intptr_t to_bottom = -(intptr_t)&base;
    char shifted[8];
    if (abi->pmpi.Type_create_hindexed_block(1, count, &to_bottom, type, shifted) !=
        PEAL_MPI_SUCCESS)
        return false;
    abi->pmpi.Type_commit(shifted);
    bool done = move_part(direction, &base, packed, 1, bytes, peal_mpi_load(abi, shifted), comm);
    abi->pmpi.Type_free(shifted);
    return done;
}

static bool move(enum direction direction, char *memory, char *packed, int count, void *type,
                 void *comm)
{
    struct peal_mpi_shape shape;
    peal_mpi_shape_get(type, &shape);
    if (count == 0 || shape.bytes == 0)
        return true;
    if (shape.contiguous) {
        char *to = direction == PACK ? packed : memory;
        memcpy(to, to == packed ? memory : packed, (uint64_t)count * shape.bytes);
        return true;
    }
    while (count > 0) {
        int now = count_part(count, shape.bytes);
        uint64_t bytes = (uint64_t)now * shape.bytes;
        if (bytes > INT32_MAX)
            return false;
        bool done = memory ? move_part(direction, memory, packed, now, (int)bytes, type, comm)
                           : part_at_bottom(direction, packed, now, (int)bytes, type, comm);
        if (!done)
            return false;
        memory += now * shape.extent;
        packed += bytes;
        count -= now;
    }
    return true;
}

bool peal_mpi_pack(const void *from, int count, void *type, void *comm, void *to)
{
    return move(PACK, (char *)(uintptr_t)from, to, count, type, comm);
}

bool peal_mpi_unpack(const void *from, void *to, int count, void *type, void *comm)
{
    return move(UNPACK, to, (char *)(uintptr_t)from, count, type, comm);
}
