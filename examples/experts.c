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

enum { TOKENS = 64, TOPK = 2, CHOICES = TOKENS * TOPK, WIDTH = 32, MOST = 16 };

struct step {
    struct peal_comm *comm;
    char *text;                       /* of experts.peal */
    int64_t sends[MOST], recvs[MOST]; /* rows to and from each rank */
    int64_t place[CHOICES];           /* where a choice's row is among those sent */
    float rows[CHOICES][WIDTH];       /* packed by destination */
    float weights[CHOICES][WIDTH];    /* of the choices, as rows */
    float got[MOST * CHOICES][WIDTH]; /* packed by origin; the experts work here, in place */
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

/* The router: which rank's expert a token's choice k goes to. */
static uint32_t expert_of(const struct step *s, uint32_t token, uint32_t k)
{
    return (token + k * (peal_comm_rank(s->comm) + 1)) % peal_comm_size(s->comm);
}

/* Packs the rows by destination. */
static void route(struct step *s)
{
    uint32_t rank = peal_comm_rank(s->comm), size = peal_comm_size(s->comm);
    int64_t row = 0;
    for (uint32_t q = 0; q < size; q++) {
        s->sends[q] = 0;
        for (uint32_t c = 0; c < CHOICES; c++) {
            uint32_t token = c / TOPK, k = c % TOPK;
            if (expert_of(s, token, k) != q)
                continue;
            for (int i = 0; i < WIDTH; i++) {
                s->rows[row][i] = (float)(1000 * rank + token);
                s->weights[c][i] = (float)(k + 1);
            }
            s->place[c] = row++;
            s->sends[q]++;
        }
    }
}

static enum peal_status run(struct step *s)
{
    uint32_t rank = peal_comm_rank(s->comm), size = peal_comm_size(s->comm);
    int32_t sends[MOST], recvs[MOST];
    int64_t arrived = 0;
    route(s);
    for (uint32_t q = 0; q < size; q++)
        sends[q] = (int32_t)s->sends[q];
    const struct peal_arg counts[] = {buffer(sends, size * sizeof *sends),
                                      buffer(recvs, size * sizeof *recvs)};
    enum peal_status status = launch(s, "experts_counts", counts, 2, 0);
    for (uint32_t q = 0; q < size && status == PEAL_OK; q++)
        arrived += s->recvs[q] = recvs[q];

    const struct peal_arg dispatch[] = {buffer(s->rows, sizeof s->rows),
                                        buffer(s->got, (size_t)arrived * sizeof *s->got),
                                        integers(s->sends, size), integers(s->recvs, size)};
    if (status == PEAL_OK)
        status = launch(s, "experts_dispatch", dispatch, 4, 1);

    for (int64_t i = 0; i < arrived; i++) /* the expert */
        for (int j = 0; j < WIDTH; j++)
            s->got[i][j] *= (float)(rank + 1);

    const struct peal_arg combine[] = {
        dispatch[1], buffer(s->weights, sizeof s->weights), buffer(s->y, sizeof s->y),  dispatch[2],
        dispatch[3], {.kind = PEAL_ARG_INT, .value = TOPK}, integers(s->place, CHOICES)};
    return status == PEAL_OK ? launch(s, "experts_combine", combine, 7, 2) : status;
}

/* What each token must have become: the same sum, without any communication. */
static int count_wrong(const struct step *s)
{
    uint32_t rank = peal_comm_rank(s->comm);
    int wrong = 0;
    for (uint32_t t = 0; t < TOKENS; t++) {
        float expected = 0;
        for (uint32_t k = 0; k < TOPK; k++)
            expected += (float)((k + 1) * (expert_of(s, t, k) + 1) * (1000 * rank + t));
        for (int i = 0; i < WIDTH; i++)
            wrong += s->y[t][i] != expected;
    }
    return wrong;
}

static char *read_text(const char *path)
{
    enum { ROOM = 1 << 16 };
    FILE *file = path ? fopen(path, "r") : NULL;
    char *text = calloc(1, ROOM);
    if (file && text && (fread(text, 1, ROOM - 1, file) == 0 || ferror(file)))
        text[0] = '\0';
    if (file)
        fclose(file);
    return text;
}

int main(int argc, char **argv)
{
    struct step *s = calloc(1, sizeof *s);
    if (!s || peal_comm_open(NULL, &s->comm) != PEAL_OK) {
        fprintf(stderr, "cannot join: %s\n", peal_comm_error(NULL));
        return 1;
    }
    s->text = read_text(argc > 1 ? argv[1] : NULL);
    enum peal_status status =
        s->text && *s->text && peal_comm_size(s->comm) <= MOST ? run(s) : PEAL_INVALID;
    int wrong = status == PEAL_OK ? count_wrong(s) : 0;
    if (status != PEAL_OK)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(s->comm));
    else
        printf("rank %u: %d tokens to %d experts each and back, %d elements wrong\n",
               peal_comm_rank(s->comm), TOKENS, TOPK, wrong);
    peal_comm_close(s->comm);
    free(s->text);
    free(s);
    return status != PEAL_OK || wrong;
}
