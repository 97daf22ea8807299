/* SPDX-License-Identifier: Apache-2.0 */
/* A user-defined reduction. Each rank has measured one period, rank 0 the oldest, and all get a
 * smoothed value in which every period counts half as much as the one after it. The order matters,
 * and the expression is not associative, so nothing is declared: Peal then takes only algorithms
 * that combine from left to right, beginning with rank 0.
 *
 *     peal exec -n 4 ./reduction
 */
#include <peal/peal.h>

#include <stdio.h>

enum { POINTS = 1000 };

int main(void)
{
    struct peal_comm *comm;
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "%s\n", peal_comm_error(NULL));
        return 1;
    }
    enum peal_reduction smooth;
    enum peal_status status =
        peal_reduction_declare(comm, "reduce smooth(a, b) = a / 2 + b", NULL, &smooth);
    float period[POINTS], smoothed[POINTS], wanted = 0;
    for (int i = 0; i < POINTS; i++)
        period[i] = (float)(1 + peal_comm_rank(comm));
    for (uint32_t r = 0; r < peal_comm_size(comm); r++)
        wanted = r == 0 ? 1 : wanted / 2 + (float)(1 + r);
    if (status == PEAL_OK)
        status = peal_allreduce(comm, period, smoothed, POINTS, PEAL_F32, smooth);
    if (status != PEAL_OK)
        fprintf(stderr, "rank %u: %s\n", peal_comm_rank(comm), peal_comm_error(comm));
    else if (peal_comm_rank(comm) == 0)
        printf("%u periods: %g, expected %g\n", peal_comm_size(comm), smoothed[0], wanted);
    int right = status == PEAL_OK && smoothed[POINTS - 1] == wanted;
    peal_comm_close(comm);
    return right ? 0 : 1;
}
