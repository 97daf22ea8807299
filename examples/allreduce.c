/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of a vector over all ranks, in place.
 *
 *   cc -o allreduce allreduce.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./allreduce                 or under mpirun, srun, torchrun
 */
#include <peal/peal.h>

#include <stdio.h>

enum { COUNT = 1000 };

int main(void)
{
    struct peal_comm *comm;
    float x[COUNT];
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i + 100 * peal_comm_rank(comm));

    enum peal_status status = peal_allreduce(comm, x, x, COUNT, PEAL_F32, PEAL_AVG);
    if (status != PEAL_OK)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(comm));
    else if (peal_comm_rank(comm) == 0)
        printf("x[7] is %.1f, the mean over %u ranks\n", (double)x[7], peal_comm_size(comm));

    peal_comm_close(comm);
    return status != PEAL_OK;
}
