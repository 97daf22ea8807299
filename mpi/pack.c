/* SPDX-License-Identifier: Apache-2.0 */
/* See pack.h. A predefined type without holes is its own packed form. Any other is given to the
 * MPI, also if its size is its extent: its parts may be in another order. */
#include "pack.h"

#include <string.h>

/* Packing counts bytes in an int: more than this is done in turns. */
enum { TURN_BYTES = 1 << 30 };

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

/* Elements to do at once. */
static int take_turn(int left, uint64_t bytes)
{
    uint64_t most = bytes > 0 ? TURN_BYTES / bytes : (uint64_t)left;
    if (most == 0)
        most = 1;
    return (uint64_t)left < most ? left : (int)most;
}

bool peal_mpi_pack(const void *from, int count, void *type, void *comm, void *to)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    struct peal_mpi_shape shape;
    peal_mpi_shape_get(type, &shape);
    if (count == 0 || shape.bytes == 0)
        return true;
    if (shape.contiguous) {
        memcpy(to, from, (uint64_t)count * shape.bytes);
        return true;
    }
    const char *source = from;
    char *target = to;
    while (count > 0) {
        int now = take_turn(count, shape.bytes), position = 0;
        uint64_t bytes = (uint64_t)now * shape.bytes;
        if (bytes > INT32_MAX || abi->pmpi.Pack(source, now, type, target, (int)bytes, &position,
                                                comm) != PEAL_MPI_SUCCESS)
            return false;
        source += now * shape.extent;
        target += bytes;
        count -= now;
    }
    return true;
}

bool peal_mpi_unpack(const void *from, void *to, int count, void *type, void *comm)
{
    const struct peal_mpi_abi *abi = peal_mpi();
    struct peal_mpi_shape shape;
    peal_mpi_shape_get(type, &shape);
    if (count == 0 || shape.bytes == 0)
        return true;
    if (shape.contiguous) {
        memcpy(to, from, (uint64_t)count * shape.bytes);
        return true;
    }
    const char *source = from;
    char *target = to;
    while (count > 0) {
        int now = take_turn(count, shape.bytes), position = 0;
        uint64_t bytes = (uint64_t)now * shape.bytes;
        if (bytes > INT32_MAX || abi->pmpi.Unpack(source, (int)bytes, &position, target, now, type,
                                                  comm) != PEAL_MPI_SUCCESS)
            return false;
        target += now * shape.extent;
        source += bytes;
        count -= now;
    }
    return true;
}
