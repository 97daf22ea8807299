/* SPDX-License-Identifier: Apache-2.0 */
/* A rank dies; the others get an error, make a new group of the remaining ranks, and go on.
 *
 *   cc -o survive survive.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./survive
 */
#include <peal/peal.h>

#include <stdio.h>
#include <unistd.h>

int main(void)
{
    struct peal_comm *comm, *left;
    struct peal_open options = {.quiet = 1}; /* reports are read, not printed */
    if (peal_comm_open(&options, &comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    int32_t one = 1, all = 0;
    if (peal_barrier(comm) != PEAL_OK)
        return 1;
    if (rank == 1)
        _exit(0); /* without a word */

    enum peal_status status = peal_allreduce(comm, &one, &all, 1, PEAL_I32, PEAL_SUM);
    if (status != PEAL_PEER_DEAD && size > 1) {
        fprintf(stderr, "rank %u: %s\n", rank, peal_status_text(status));
        return 1;
    }
    if (size > 1 && (status = peal_comm_shrink(comm, &left)) == PEAL_OK) {
        peal_comm_close(comm);
        comm = left;
        status = peal_allreduce(comm, &one, &all, 1, PEAL_I32, PEAL_SUM);
    }
    if (status == PEAL_OK)
        printf("rank %u of %u is now rank %u of %d\n", rank, size, peal_comm_rank(comm), (int)all);
    else
        fprintf(stderr, "rank %u: %s\n", rank, peal_comm_error(comm));
    peal_comm_close(comm);
    return status != PEAL_OK;
}
