/* SPDX-License-Identifier: Apache-2.0 */
/* One step of examples/experts.peal (counts, rows to the experts and back) against a naive loop.
 *
 *   experts FILE.peal      prints TAP
 *
 * Rank q's expert multiplies a row by q + 2. All numbers are small integers, so sums are exact.
 */
#include "lang/lang.h"
#include "base/base.h"
#include "interp/interp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RANKS = 8,
    TOKENS = 6,
    TOPK = 2,
    CHOICES = TOKENS * TOPK,
    WIDTH = 3,
    ROWS = RANKS * CHOICES
};

struct step {
    struct peal_program *program;
    uint32_t nranks;
    uint64_t seed;
    uint32_t expert[RANKS][CHOICES]; /* the rank that choice k of token t goes to: [t * TOPK + k] */
    int64_t place[RANKS * CHOICES];  /* its row in the order of sending */
    int64_t sends[RANKS * RANKS];    /* [from * nranks + to], rows */
    int64_t recvs[RANKS * RANKS];    /* [to * nranks + from] */
    float got[RANKS][ROWS][WIDTH];
    float y[RANKS][TOKENS][WIDTH];
};

static float token_value(uint32_t rank, uint32_t token, uint32_t column)
{
    return (float)(100 * rank + 10 * token + column);
}

static float weight(uint32_t rank, uint32_t choice)
{
    return (float)((rank + 3 * choice) % 5 + 1);
}

static int fail_step(const char *part, const char *why)
{
    printf("# %s: %s\n", part, why);
    return 1;
}

/* Instantiates one of the file's kernels for this step, with the first `nvalues` of the parameters,
 * and makes an interpreter of one launch. */
static struct peal_interp *begin(const struct step *s, const char *kernel, size_t nvalues,
                                 struct peal_plan **plan)
{
    int64_t width = WIDTH, tokens = TOKENS, topk = TOPK;
    const struct peal_bind_value values[] = {
        {"width", &width, 1, true},
        {"sends", s->sends, s->nranks, true},
        {"recvs", s->recvs, s->nranks, true},
        {"tokens", &tokens, 1, true},
        {"topk", &topk, 1, true},
        {"place", s->place, CHOICES, true},
    };
    struct peal_bind bind = {.nranks = s->nranks,
                             .rank = PEAL_NONE,
                             .dtype = PEAL_F32,
                             .values = values,
                             .nvalues = nvalues};
    struct peal_diags diags;
    peal_diags_init(&diags);
    const struct peal_kernel *k = peal_program_kernel(s->program, kernel, &diags);
    struct peal_interp *in = NULL;
    if (k && peal_instantiate(k, &bind, &diags, plan) == PEAL_OK) {
        in = peal_interp_new(s->nranks);
        peal_interp_launch(in, *plan);
    } else {
        struct peal_text text = {0};
        peal_diags_print(&diags, false, &text);
        fail_step(kernel, peal_text_get(&text));
        peal_text_release(&text);
    }
    peal_diags_release(&diags);
    return in;
}

static int end(struct peal_interp *in, struct peal_plan *plan, int failed)
{
    peal_interp_free(in);
    free(plan);
    return failed;
}

static int run(const struct step *s, struct peal_interp *in)
{
    struct peal_interp_schedule schedule = {.order = PEAL_INTERP_RANDOM, .seed = s->seed};
    if (peal_interp_run(in, &schedule) != PEAL_INTERP_DONE)
        return fail_step("does not end well", peal_interp_why(in));
    return 0;
}

/* The router's choices, and the rows in the order of sending: by destination, then by choice. */
static void route(struct step *s)
{
    for (uint32_t r = 0; r < s->nranks; r++) {
        int64_t row = 0;
        for (uint32_t c = 0; c < CHOICES; c++)
            s->expert[r][c] = (uint32_t)(peal_hash_u64(c + CHOICES * r, s->seed) % s->nranks);
        for (uint32_t q = 0; q < s->nranks; q++) {
            s->sends[r * s->nranks + q] = 0;
            for (uint32_t c = 0; c < CHOICES; c++) {
                if (s->expert[r][c] != q)
                    continue;
                s->sends[r * s->nranks + q]++;
                s->place[r * CHOICES + c] = row++;
            }
        }
    }
}

static int exchange_counts(struct step *s)
{
    struct peal_plan *plan = NULL;
    struct peal_interp *in = begin(s, "experts_counts", 0, &plan);
    if (!in)
        return end(in, plan, 1);
    for (uint32_t r = 0; r < s->nranks; r++) {
        int64_t *sends = peal_interp_input(in, 0, r, 0);
        for (uint32_t q = 0; q < s->nranks; q++)
            sends[q] = s->sends[r * s->nranks + q];
    }
    if (run(s, in))
        return end(in, plan, 1);
    int failed = 0;
    for (uint32_t r = 0; r < s->nranks; r++) {
        const int64_t *recvs = peal_interp_output(in, 0, r, 1);
        for (uint32_t q = 0; q < s->nranks; q++) {
            s->recvs[r * s->nranks + q] = recvs[q];
            if (recvs[q] != s->sends[q * s->nranks + r])
                failed = fail_step("counts", "a rank received another count than its peer sends");
        }
    }
    return end(in, plan, failed);
}

static int64_t total(const struct step *s, const int64_t *counts, uint32_t rank)
{
    int64_t sum = 0;
    for (uint32_t q = 0; q < s->nranks; q++)
        sum += counts[rank * s->nranks + q];
    return sum;
}

static int dispatch(struct step *s)
{
    struct peal_plan *plan = NULL;
    struct peal_interp *in = begin(s, "experts_dispatch", 3, &plan);
    if (!in)
        return end(in, plan, 1);
    for (uint32_t r = 0; r < s->nranks; r++) {
        float *rows = peal_interp_input(in, 0, r, 0);
        for (uint32_t c = 0; c < CHOICES; c++) {
            for (uint32_t w = 0; w < WIDTH; w++)
                rows[s->place[r * CHOICES + c] * WIDTH + w] = token_value(r, c / TOPK, w);
        }
    }
    if (run(s, in))
        return end(in, plan, 1);
    for (uint32_t r = 0; r < s->nranks; r++)
        memcpy(s->got[r], peal_interp_output(in, 0, r, 1),
               (size_t)total(s, s->recvs, r) * WIDTH * sizeof(float));
    return end(in, plan, 0);
}

static void run_experts(struct step *s)
{
    for (uint32_t r = 0; r < s->nranks; r++) {
        for (int64_t row = 0; row < total(s, s->recvs, r); row++) {
            for (uint32_t w = 0; w < WIDTH; w++)
                s->got[r][row][w] *= (float)(r + 2);
        }
    }
}

static int combine(struct step *s)
{
    struct peal_plan *plan = NULL;
    struct peal_interp *in = begin(s, "experts_combine", 6, &plan);
    if (!in)
        return end(in, plan, 1);
    for (uint32_t r = 0; r < s->nranks; r++) {
        float *weights = peal_interp_input(in, 0, r, 1);
        memcpy(peal_interp_input(in, 0, r, 0), s->got[r],
               (size_t)total(s, s->recvs, r) * WIDTH * sizeof(float));
        for (uint32_t c = 0; c < CHOICES * WIDTH; c++)
            weights[c] = weight(r, c / WIDTH);
    }
    if (run(s, in))
        return end(in, plan, 1);
    for (uint32_t r = 0; r < s->nranks; r++)
        memcpy(s->y[r], peal_interp_output(in, 0, r, 2), sizeof s->y[r]);
    return end(in, plan, 0);
}

static int compare(const struct step *s)
{
    for (uint32_t r = 0; r < s->nranks; r++) {
        for (uint32_t t = 0; t < TOKENS; t++) {
            for (uint32_t w = 0; w < WIDTH; w++) {
                float want = 0;
                for (uint32_t c = t * TOPK; c < (t + 1) * TOPK; c++)
                    want += weight(r, c) * (float)(s->expert[r][c] + 2) * token_value(r, t, w);
                if (s->y[r][t][w] != want)
                    return fail_step("combine", "a token's sum is wrong");
            }
        }
    }
    return 0;
}

static int try_step(struct step *s)
{
    route(s);
    if (exchange_counts(s) || dispatch(s))
        return 1;
    run_experts(s);
    return combine(s) || compare(s);
}

int main(int argc, char **argv)
{
    struct peal_program *program = NULL;
    struct step *s = calloc(1, sizeof *s);
    int failures = 0;
    if (!s || argc != 2 || peal_program_open(argv[1], NULL, &program) != PEAL_OK) {
        fprintf(stderr, "usage: experts FILE.peal\n");
        return 2;
    }
    for (uint32_t nranks = 1; nranks <= RANKS; nranks++) {
        int failed = 0;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            *s = (struct step){.program = program, .nranks = nranks, .seed = seed};
            failed = try_step(s);
            if (failed)
                break;
        }
        printf("%s %u - a step of expert parallelism on %u ranks\n", failed ? "not ok" : "ok",
               nranks, nranks);
        failures += failed;
    }
    printf("1..%d\n", RANKS);
    peal_program_close(program);
    free(s);
    return failures != 0;
}
