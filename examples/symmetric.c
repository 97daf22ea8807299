/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that all ranks can address: written by a peer, reduced without a copy; ranks as threads.
 *
 *   cc -pthread -o symmetric symmetric.c $(pkg-config --cflags --libs peal)
 *   ./symmetric 4
 *
 * With PEAL_PLATFORM=sim:mesh4x4 in the environment the collectives run on that simulated machine,
 * and each rank says how long they took there.
 */
#include <peal/peal.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 16, COUNT = 4096 };

static enum peal_status exchange(struct peal_comm *comm)
{
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    void *memory;
    enum peal_status status = peal_symmetric_alloc(comm, COUNT * sizeof(float), &memory);
    if (status != PEAL_OK)
        return status;
    /* Into the right neighbour's copy; a barrier before anyone looks. */
    float *there = peal_symmetric_at(comm, memory, (rank + 1) % size);
    for (int i = 0; i < COUNT; i++)
        there[i] = (float)rank;
    status = peal_barrier(comm);
    float came = *(float *)memory;
    if (status == PEAL_OK)
        status = peal_allreduce(comm, memory, memory, COUNT, PEAL_F32, PEAL_SUM);
    char took[32] = "";
    if (peal_comm_simulated_ps(comm))
        snprintf(took, sizeof took, ", in %.3f us", (double)peal_comm_simulated_ps(comm) / 1e6);
    if (status == PEAL_OK)
        printf("rank %u: %.0f came from the left, the sum is %.0f%s\n", rank, (double)came,
               (double)*(float *)memory, took);
    enum peal_status freed = peal_symmetric_free(comm, memory);
    return status != PEAL_OK ? status : freed;
}

static void *body(void *comm)
{
    peal_comm_set_timeout(comm, 10000); /* ten seconds without progress are a failure */
    enum peal_status status = exchange(comm);
    if (status == PEAL_OK && peal_comm_rank(comm) == 0)
        status = peal_comm_set_algo(comm, "allreduce", NULL); /* as the tables choose */
    if (status == PEAL_OK && peal_comm_rank(comm) == 0)
        printf("%s\n", peal_comm_explain(comm, "allreduce", COUNT * sizeof(float), 1));
    if (status != PEAL_OK)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(comm));
    peal_comm_close(comm);
    return status != PEAL_OK ? comm : NULL; /* only whether it is NULL is looked at */
}

int main(int argc, char **argv)
{
    struct peal_comm *comms[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    uint32_t size = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2;
    if (size < 1 || size > MAX_RANKS || peal_comm_open_threads(size, comms) != PEAL_OK) {
        fprintf(stderr, "cannot open %u ranks: %s\n", size, peal_comm_error(NULL));
        return 1;
    }
    for (uint32_t r = 0; r < size; r++) {
        if (pthread_create(&threads[r], NULL, body, comms[r]) != 0)
            abort();
    }
    int failed = 0;
    for (uint32_t r = 0; r < size; r++) {
        void *result;
        pthread_join(threads[r], &result);
        failed |= result != NULL;
    }
    return failed;
}
