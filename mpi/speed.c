/* SPDX-License-Identifier: Apache-2.0 */
/* See speed.h. The rows come from `mpi/bench/run --slower`; docs/mpi.md has what was measured. */
#include "speed.h"

static const struct {
    enum peal_mpi_what what;
    char mpi; /* 'O': Open MPI, 'M': MPICH, '*': both */
    uint32_t least_ranks, most_ranks;
    uint64_t least, most; /* bytes, as peal_mpi_judge counts them */
} cells[] = {
    /* One message per rank that nobody waits for: the MPIs send it and go on, so that a loop of
     * calls costs no more than sending. */
    {PEAL_MPI_BCAST, '*', 2, PEAL_MOST_RANKS, 0, 511},
    {PEAL_MPI_REDUCE, '*', 2, PEAL_MOST_RANKS, 0, 2047},
};

bool peal_mpi_is_slower(const struct peal_mpi_call *call)
{
    char mpi = peal_mpi()->int_handles ? 'M' : 'O';
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        if (cells[i].what != call->what || (cells[i].mpi != '*' && cells[i].mpi != mpi))
            continue;
        uint32_t ranks = call->state->size;
        if (ranks < cells[i].least_ranks || ranks > cells[i].most_ranks)
            continue;
        if (call->bytes >= cells[i].least && call->bytes <= cells[i].most)
            return true;
    }
    return false;
}
