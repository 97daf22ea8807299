/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a layer with experts on all ranks: tokens travel to the ranks of their experts and
 * back, by the three kernels of experts.peal. Only the router's choice is made up here, and the
 * expert: rank q's multiplies by q + 1.
 *
 *   cc -o experts experts.c $(pkg-config --cflags --libs peal)
 *   peal exec -n 4 -- ./experts experts.peal
 */
#include <peal/peal.h>

#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 64, TOPK = 2, CHOICES = TOKENS * TOPK, WIDTH = 32, MAX_RANKS = 16 };

struct step {
    struct peal_comm *comm;
    uint32_t rank, size;
    char text[1 << 16];                         /* of experts.peal */
    int64_t sends[MAX_RANKS], recvs[MAX_RANKS]; /* rows to and from each rank */
    int64_t place[CHOICES];                     /* where a choice's row is among those sent */
    float rows[CHOICES][WIDTH];                 /* packed by destination */
    float weights[CHOICES][WIDTH];              /* of the choices, as rows */
    float got[MAX_RANKS * CHOICES][WIDTH];      /* packed by origin; the experts work in place */
    float y[TOKENS][WIDTH];
};

static struct peal_arg buffer(void *data, size_t bytes)
{
    return (struct peal_arg){.kind = PEAL_ARG_BUFFER, .data = data, .bytes = bytes};
}

static struct peal_arg integers(const int64_t *values, size_t count)
{
    return (struct peal_arg){.kind = PEAL_ARG_INTS, .values = values, .nvalues = count};
}

/* Kernels are small, and loading one again is cheap; a program with many steps would keep them. */
static enum peal_status launch(struct step *s, const char *name, const struct peal_arg *args,
                               size_t nargs, size_t ndims)
{
    const struct peal_dim dims[] = {{"width", WIDTH}, {"tokens", TOKENS}};
    struct peal_user_kernel *kernel;
    enum peal_status status = peal_user_kernel_load(s->comm, s->text, name, &kernel);
    if (status != PEAL_OK)
        return status;
    status = peal_user_kernel_launch(kernel, PEAL_F32, args, nargs, dims, ndims);
    peal_user_kernel_free(kernel);
    return status;
}

/* The router: which rank's expert choice c goes to. Choices TOPK * t + k are token t's. */
static uint32_t expert_of(const struct step *s, uint32_t c)
{
    return (c / TOPK + c % TOPK * (s->rank + 1)) % s->size;
}

/* Packs the rows by destination. */
static void route(struct step *s)
{
    int64_t row = 0;
    for (uint32_t q = 0; q < s->size; q++) {
        for (uint32_t c = 0; c < CHOICES; c++) {
            if (expert_of(s, c) != q)
                continue;
            for (int i = 0; i < WIDTH; i++) {
                s->rows[row][i] = (float)(1000 * s->rank + c / TOPK);
                s->weights[c][i] = (float)(c % TOPK + 1);
            }
            s->place[c] = row++;
            s->sends[q]++;
        }
    }
}

static enum peal_status run(struct step *s)
{
    int64_t arrived = 0;
    route(s);
    const struct peal_arg counts[] = {buffer(s->sends, s->size * sizeof *s->sends),
                                      buffer(s->recvs, s->size * sizeof *s->recvs)};
    enum peal_status status = launch(s, "experts_counts", counts, 2, 0);
    for (uint32_t q = 0; q < s->size; q++)
        arrived += s->recvs[q];

    const struct peal_arg sends = integers(s->sends, s->size), recvs = integers(s->recvs, s->size),
                          got = buffer(s->got, (size_t)arrived * sizeof *s->got);
    const struct peal_arg dispatch[] = {buffer(s->rows, sizeof s->rows), got, sends, recvs};
    if (status == PEAL_OK)
        status = launch(s, "experts_dispatch", dispatch, 4, 1);

    for (int64_t i = 0; i < arrived * WIDTH; i++) /* the expert */
        ((float *)s->got)[i] *= (float)(s->rank + 1);

    const struct peal_arg weights = buffer(s->weights, sizeof s->weights),
                          y = buffer(s->y, sizeof s->y), place = integers(s->place, CHOICES),
                          topk = {.kind = PEAL_ARG_INT, .value = TOPK};
    const struct peal_arg combine[] = {got, weights, y, sends, recvs, topk, place};
    return status == PEAL_OK ? launch(s, "experts_combine", combine, 7, 2) : status;
}

/* What each token must have become: the same sum, without any communication. */
static int count_wrong(const struct step *s)
{
    int wrong = 0;
    for (uint32_t t = 0; t < TOKENS; t++) {
        uint32_t expected = 0;
        for (uint32_t k = 0; k < TOPK; k++)
            expected += (k + 1) * (expert_of(s, t * TOPK + k) + 1) * (1000 * s->rank + t);
        for (int i = 0; i < WIDTH; i++)
            wrong += s->y[t][i] != (float)expected;
    }
    return wrong;
}

int main(int argc, char **argv)
{
    struct step *s = calloc(1, sizeof *s);
    FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
    if (!s || !file || fread(s->text, 1, sizeof s->text - 1, file) == 0) {
        fprintf(stderr, "usage: experts experts.peal\n");
        return 1;
    }
    fclose(file);
    if (peal_comm_open(NULL, &s->comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    s->rank = peal_comm_rank(s->comm);
    s->size = peal_comm_size(s->comm);
    enum peal_status status = s->size <= MAX_RANKS ? run(s) : PEAL_INVALID;
    int wrong = status == PEAL_OK ? count_wrong(s) : 0;
    if (status == PEAL_OK)
        printf("rank %u: %d tokens to %d experts each and back, %d elements wrong\n", s->rank,
               TOKENS, TOPK, wrong);
    else
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(s->comm));
    peal_comm_close(s->comm);
    free(s);
    return status != PEAL_OK || wrong;
}
