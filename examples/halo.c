/* SPDX-License-Identifier: Apache-2.0 */
/* Heat in a ring of cells, of which each rank has a part: neighbours exchange their edges by put
 * and signal, and a rank waits only for its two neighbours.
 *
 *   cc -o halo halo.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./halo
 */
#include <peal/onesided.h>

#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 1000, STEPS = 500 };

/* Symmetric: peers write the edges and count up the signals. Two edges per side, used in turn, so
 * that a neighbour that is a step ahead does not overwrite what is still being read. */
struct shared {
    double from_left[2], from_right[2];
    uint64_t left_arrived, right_arrived;
};

static enum peal_status exchange(struct peal_comm *comm, struct shared *shared, const double *cells,
                                 uint64_t step)
{
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    uint32_t left = (rank + size - 1) % size, right = (rank + 1) % size, turn = step % 2;
    enum peal_status status = peal_put_notify(comm, &shared->from_right[turn], &cells[0],
                                              sizeof(double), &shared->right_arrived, 1, left);
    if (status == PEAL_OK)
        status = peal_put_notify(comm, &shared->from_left[turn], &cells[CELLS - 1], sizeof(double),
                                 &shared->left_arrived, 1, right);
    if (status == PEAL_OK)
        status = peal_wait_until(comm, &shared->left_arrived, PEAL_GE, step + 1);
    if (status == PEAL_OK)
        status = peal_wait_until(comm, &shared->right_arrived, PEAL_GE, step + 1);
    return status;
}

static void diffuse(const double *old, double left, double right, double *new)
{
    for (int i = 0; i < CELLS; i++) {
        double before = i > 0 ? old[i - 1] : left;
        double after = i < CELLS - 1 ? old[i + 1] : right;
        new[i] = old[i] + 0.25 * (before - 2 * old[i] + after);
    }
}

int main(void)
{
    static double cells[2][CELLS];
    struct peal_comm *comm;
    void *memory;
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "%s\n", peal_comm_error(NULL));
        return 1;
    }
    enum peal_status status = peal_symmetric_alloc(comm, sizeof(struct shared), &memory);
    struct shared *shared = memory;
    if (peal_comm_rank(comm) == 0)
        cells[0][0] = 1000; /* one hot cell */
    for (uint64_t step = 0; step < STEPS; step++) {
        const double *old = cells[step % 2];
        if (status == PEAL_OK)
            status = exchange(comm, shared, old, step);
        if (status != PEAL_OK)
            break;
        diffuse(old, shared->from_left[step % 2], shared->from_right[step % 2],
                cells[(step + 1) % 2]);
    }
    double own = 0, heat = 0;
    for (int i = 0; i < CELLS; i++)
        own += cells[STEPS % 2][i];
    if (status == PEAL_OK)
        status = peal_allreduce(comm, &own, &heat, 1, PEAL_F64, PEAL_SUM);
    if (status == PEAL_OK && peal_comm_rank(comm) == 0)
        printf("after %d steps the heat is %.6f\n", STEPS, heat);
    if (status != PEAL_OK)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(comm));
    peal_comm_close(comm);
    return status != PEAL_OK;
}
