/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks as threads add their numbers; then one kernel is proved, and another one refuted. */
#include <peal/peal.h>
#include <peal/verify.h>
#include <pthread.h>
#include <stdio.h>

struct member {
    struct peal_comm *comm;
    float result;
    enum peal_status status;
};

static void *add_up(void *arg)
{
    struct member *member = arg;
    float mine = (float)(peal_comm_rank(member->comm) + 1);
    member->status = peal_allreduce(member->comm, &mine, &member->result, 1, PEAL_F32, PEAL_SUM);
    return NULL;
}

static int expect(struct peal_verify_args *args, enum peal_outcome outcome, enum peal_fault fault)
{
    struct peal_verdict *verdict;
    enum peal_status status = peal_verify(args, &verdict);
    int right = status == PEAL_OK && verdict->outcome == outcome;
    if (right && outcome == PEAL_REFUTED)
        right = verdict->counterexample->fault == fault && verdict->counterexample->nsteps > 0 &&
                verdict->counterexample->steps[0]->place.line == 1;
    if (!right)
        fprintf(stderr, "verify: %s: %s\n", peal_status_text(status), verdict ? verdict->text : "");
    peal_verdict_free(verdict);
    return right;
}

static int verify(void)
{
    struct peal_verify_args args;
    peal_verify_args_init(&args);
    args.library = "allreduce_ring";
    if (!expect(&args, PEAL_PROVED, PEAL_FAULT_NONE))
        return 0;
    args.library = NULL;
    args.text = "kernel k(in x: T[n], out y: T[n]) { signal s notify s@rank += 1 wait s >= 2 y = x }";
    return expect(&args, PEAL_REFUTED, PEAL_FAULT_DEADLOCK);
}

int main(void)
{
    struct peal_comm *comms[2];
    enum peal_status status = peal_comm_open_threads(2, comms);
    if (status != PEAL_OK) {
        fprintf(stderr, "could not open: %s: %s\n", peal_status_text(status),
                peal_comm_error(NULL));
        return 1;
    }
    struct member members[2] = {{comms[0], 0, PEAL_OK}, {comms[1], 0, PEAL_OK}};
    pthread_t other;
    if (pthread_create(&other, NULL, add_up, &members[1]) != 0)
        return 1;
    add_up(&members[0]);
    pthread_join(other, NULL);
    for (int r = 0; r < 2; r++) {
        if (members[r].status != PEAL_OK || members[r].result != 3.0f) {
            fprintf(stderr, "rank %d: %s, %g\n", r, peal_status_text(members[r].status),
                    (double)members[r].result);
            return 1;
        }
        peal_comm_close(comms[r]);
    }
    if (!verify())
        return 1;
    printf("sum over %d ranks: %g\n", 2, (double)members[0].result);
    return 0;
}
