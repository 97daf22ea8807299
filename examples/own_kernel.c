/* SPDX-License-Identifier: Apache-2.0 */
/* Your own kernel, loaded from text and launched like a built-in: every rank gets the
 * difference between its vector and its left neighbour's.
 *
 *   cc -o own_kernel own_kernel.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 3 -- ./own_kernel
 *
 * With PEAL_VERIFY=1 in the environment the plan is proved before its first launch.
 */
#include <peal/peal.h>

#include <stdio.h>

enum { COUNT = 8 };

static const char text[] = "kernel difference(in x: T[n], out y: T[n]) {\n"
                           "    send x to (rank + 1) % nranks\n"
                           "    y = x - recv from (rank - 1) % nranks\n"
                           "}\n";

static enum peal_status launch(struct peal_comm *comm)
{
    struct peal_user_kernel *kernel;
    float x[COUNT], y[COUNT];
    enum peal_status status = peal_user_kernel_load(comm, text, NULL, &kernel);
    if (status != PEAL_OK)
        return status;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i + 10 * peal_comm_rank(comm));

    struct peal_arg args[] = {
        {.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
        {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y},
    };
    struct peal_dim n = {"n", COUNT};
    status = peal_user_kernel_launch(kernel, PEAL_F32, args, 2, &n, 1);
    if (status == PEAL_OK)
        printf("rank %u: the difference is %.0f\n", peal_comm_rank(comm), (double)y[0]);
    peal_user_kernel_free(kernel);
    return status;
}

int main(void)
{
    struct peal_comm *comm;
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    enum peal_status status = launch(comm);
    if (status != PEAL_OK)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(comm));
    peal_comm_close(comm);
    return status != PEAL_OK;
}
