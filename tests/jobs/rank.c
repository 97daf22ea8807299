/* SPDX-License-Identifier: Apache-2.0 */
/* A rank for tests of exec, ps and doctor.
 *
 *   rank stuck            all but rank 1 wait in an allreduce, rank 1 outside any call
 *   rank code C0 C1 ...   rank R ends with code CR
 *   rank signal           ends with 7 on SIGUSR1, with 8 on SIGTERM
 *   rank lines            prints two lines, the second without a line feed
 *   rank sum              prints the result of an allreduce
 *   rank split            opens a communicator of this rank alone beside the common one, and waits
 */
#include <peal/peal.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void say_ready(void)
{
    printf("ready\n");
    fflush(stdout);
}

static int stay_stuck(struct peal_comm *comm)
{
    static float x[1000], y[1000];
    peal_allreduce(comm, x, y, 10, PEAL_F32, PEAL_SUM);
    if (peal_comm_rank(comm) == 1) {
        say_ready();
        for (;;)
            pause();
    }
    return peal_allreduce(comm, x, y, 1000, PEAL_F32, PEAL_MAX) == PEAL_OK ? 0 : 1;
}

static int stay_split(struct peal_comm *comm)
{
    struct peal_comm *own;
    int rank = (int)peal_comm_rank(comm);
    if (peal_comm_split(comm, rank, 0, &own) != PEAL_OK || peal_barrier(comm) != PEAL_OK)
        return 1;
    if (rank == 0)
        say_ready();
    for (;;)
        pause();
}

static void end_by_signal(int number)
{
    _exit(number == SIGUSR1 ? 7 : 8);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    const char *rank_text = getenv("PEAL_RANK");
    int rank = rank_text ? atoi(rank_text) : 0;
    if (strcmp(mode, "code") == 0)
        return rank + 2 < argc ? atoi(argv[rank + 2]) : 0;
    if (strcmp(mode, "lines") == 0) {
        printf("first of %d\nsecond of %d", rank, rank);
        return 0;
    }
    if (strcmp(mode, "signal") == 0) {
        signal(SIGUSR1, end_by_signal);
        signal(SIGTERM, end_by_signal);
        say_ready();
        for (;;)
            pause();
    }
    struct peal_comm *comm;
    if (peal_comm_open(NULL, &comm) != PEAL_OK) {
        fprintf(stderr, "%s\n", peal_comm_error(NULL));
        return 99;
    }
    if (strcmp(mode, "stuck") == 0)
        return stay_stuck(comm);
    if (strcmp(mode, "split") == 0)
        return stay_split(comm);
    int64_t one = 1, sum = 0;
    enum peal_status status = peal_allreduce(comm, &one, &sum, 1, PEAL_I64, PEAL_SUM);
    printf("%s %d\n", peal_status_text(status), (int)sum);
    peal_comm_close(comm);
    return status == PEAL_OK ? 0 : 1;
}
