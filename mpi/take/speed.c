/* SPDX-License-Identifier: Apache-2.0 */
/* See speed.h. The rows of a collective follow each other in speed.def, sorted by size. */
#include "speed.h"

struct row {
    enum peal_mpi_flavour mpi;
    uint32_t ranks;
    enum peal_mpi_collective collective;
    uint64_t bytes; /* all data of a rank */
    double plain_ns, peal_ns;
};

static const struct row rows[] = {
#define SPEED(mpi, ranks, collective, bytes, plain, peal)                                          \
    {PEAL_MPI_##mpi, ranks, PEAL_MPI_##collective, bytes, plain, peal},
#include "speed.def"
#undef SPEED
};

enum { ROWS = sizeof rows / sizeof *rows, OWN_CORES = 2, SHARED_MIN = 4, SHARED_MAX = 8 };

/* The measured number of ranks that stands for this communicator. */
static uint32_t choose_ranks(const struct peal_mpi_comm *state)
{
    if (!state->shares_cores)
        return OWN_CORES;
    return state->size < (SHARED_MIN + SHARED_MAX) / 2 ? SHARED_MIN : SHARED_MAX;
}

/* An MPI with the standard ABI may be any; MPICH is the first that has it. */
static enum peal_mpi_flavour choose_mpi(void)
{
    bool open = peal_mpi()->flavour == PEAL_MPI_OPEN;
    return open ? PEAL_MPI_OPEN : PEAL_MPI_MPICH;
}

static bool is_for(const struct row *row, const struct peal_mpi_comm *state,
                   enum peal_mpi_collective collective)
{
    return row->collective == collective && row->mpi == choose_mpi() &&
           row->ranks == choose_ranks(state);
}

/* The last row of the collective that is not larger than `bytes`, or else its first row; in `next`
 * the row after it, or NULL. Returns NULL if the collective was not measured. */
static const struct row *find(const struct peal_mpi_comm *state,
                              enum peal_mpi_collective collective, uint64_t bytes,
                              const struct row **next)
{
    const struct row *found = NULL;
    *next = NULL;
    if (state->spans)
        return NULL;
    for (int i = 0; i < ROWS; i++) {
        if (!is_for(&rows[i], state, collective))
            continue;
        *next = &rows[i];
        if (found && rows[i].bytes > bytes)
            return found;
        found = &rows[i];
    }
    *next = NULL;
    return found;
}

/* Interpolates between two rows. Before the first row times are constant, after the last they grow
 * with the size. */
static double interpolate(const struct row *row, const struct row *next, uint64_t bytes,
                          double (*of)(const struct row *))
{
    if (bytes <= row->bytes)
        return of(row);
    if (!next)
        return of(row) * (double)bytes / (double)row->bytes;
    double part = (double)(bytes - row->bytes) / (double)(next->bytes - row->bytes);
    return of(row) + part * (of(next) - of(row));
}

static double saved_ns(const struct row *row)
{
    return row->plain_ns - row->peal_ns;
}

/* Positive where Peal saves at least a tenth. Where it saves less, the faster one in one run is the
 * slower one in the next, and the call is left to the MPI. */
static double clearly_saved_ns(const struct row *row)
{
    enum { LEFT_NS = 4 }; /* what deciding costs */
    return 0.9 * (row->plain_ns + LEFT_NS) - row->peal_ns;
}

/* As speed.def counts them; of a reduce_scatter call->bytes are of all blocks already. */
static uint64_t all_bytes(const struct peal_mpi_call *call)
{
    if (call->collective == PEAL_MPI_REDUCE_SCATTER_BLOCK)
        return call->bytes;
    return peal_mpi_all_bytes(call->collective, call->bytes, call->state->size);
}

void peal_mpi_speed_look_up(struct peal_mpi_comm *state)
{
    for (int collective = 0; collective < PEAL_MPI_COLLECTIVES; collective++) {
        state->slower[collective] = 0;
        for (uint32_t class = 0; class < PEAL_MPI_CLASSES; class ++) {
            uint64_t bytes = UINT64_C(1) << class;
            const struct row *next,
                *row = find(state, (enum peal_mpi_collective)collective, bytes, &next);
            if (row && interpolate(row, next, bytes, clearly_saved_ns) < 0)
                state->slower[collective] |= UINT32_C(1) << class;
        }
    }
}

/* True if a rule may apply, so that the table alone does not decide. */
static bool is_ruled(const struct peal_mpi_comm *state, enum peal_mpi_collective collective)
{
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    for (uint32_t i = 0; i < settings->nrules; i++) {
        int of = settings->rules[i].collective;
        if ((state->rules >> i & 1) && (of < 0 || (enum peal_mpi_collective)of == collective))
            return true;
    }
    return false;
}

void peal_mpi_left_set(struct peal_mpi_comm *state)
{
    const struct peal_mpi_settings *settings = peal_mpi_settings();
    bool wants_all = settings->stats || settings->check;
    for (int collective = 0; collective < PEAL_MPI_COLLECTIVES; collective++) {
        bool tabled = settings->tabled && !is_ruled(state, (enum peal_mpi_collective)collective);
        uint32_t classes = tabled ? state->slower[collective] : 0;
        if (state->phase == PEAL_MPI_REFUSED)
            classes = UINT32_MAX;
        state->left[collective] = wants_all ? 0 : classes;
    }
}

bool peal_mpi_is_slower(const struct peal_mpi_call *call)
{
    return call->state->slower[call->collective] >> peal_mpi_class_of(all_bytes(call)) & 1;
}

bool peal_mpi_estimate(const struct peal_mpi_call *call, double *out)
{
    uint64_t bytes = all_bytes(call);
    const struct row *next, *row = find(call->state, call->collective, bytes, &next);
    if (!row || call->starts)
        return false;
    *out = interpolate(row, next, bytes, saved_ns);
    return true;
}
