/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of very different length, taken from a common queue: a counter that ranks count up by
 * fetch_add. No rank hands out work, and none waits for another until the queue is empty.
 *
 *   cc -o work_queue work_queue.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./work_queue
 */
#include <peal/onesided.h>

#include <stdio.h>

enum { TASKS = 2000 };

/* Steps of the Collatz sequence from n: how many is not known beforehand. */
static uint64_t work(uint64_t n)
{
    uint64_t steps = 0;
    while (n != 1) {
        n = n % 2 ? 3 * n + 1 : n / 2;
        steps++;
    }
    return steps;
}

int main(void)
{
    struct peal_comm *comm;
    void *memory;
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "%s\n", peal_comm_error(NULL));
        return 1;
    }
    enum peal_status status = peal_symmetric_alloc(comm, sizeof(uint64_t), &memory);
    uint64_t *next = memory; /* rank 0's is the queue */
    uint64_t task = 0, sums[2] = {0}, totals[2] = {0};
    while (status == PEAL_OK) {
        status = peal_fetch_add(comm, next, 1, 0, &task);
        if (status != PEAL_OK || task >= TASKS)
            break;
        sums[0]++;
        sums[1] += work(task + 1);
    }
    if (status == PEAL_OK)
        status = peal_allreduce(comm, sums, totals, 2, PEAL_U64, PEAL_SUM);
    if (status == PEAL_OK && peal_comm_rank(comm) == 0)
        printf("%llu tasks, %llu steps\n", (unsigned long long)totals[0],
               (unsigned long long)totals[1]);
    if (status != PEAL_OK)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(comm));
    peal_comm_close(comm);
    return status != PEAL_OK;
}
