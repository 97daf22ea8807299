/* SPDX-License-Identifier: Apache-2.0 */
/* Results worked out by hand, of every library kernel whose contract is one of these.
 *
 *   goldens FILE.peal...      prints TAP, a line per kernel
 *
 *   allreduce   x[i] = i + 100 rank, 256 f32:      y[i] = sum over r of (i + 100 r)
 *   broadcast   x[i] = 100 rank + i, 64 f32:       y[i] = 100 root + i
 *   hello_send  x[i] = 100 rank + i:               y[i] = 100 (rank before) + i
 *   all_to_all  x[dst C + j] = 1000 rank + 100 dst + j:   y[src C + j] = 1000 src + 100 rank + j
 */
#include "conformance/case.h"
#include "conformance/each.h"

#include <stdio.h>
#include <string.h>

enum { BLOCK = 16 };

struct golden {
    const char *contract;
    uint64_t count; /* 0: BLOCK for each rank */
    float (*given)(uint32_t rank, uint64_t i);
    float (*want)(uint32_t rank, uint64_t i, uint32_t nranks, uint32_t root);
};

static float allreduce_given(uint32_t rank, uint64_t i)
{
    return (float)(i + 100 * rank);
}

static float allreduce_want(uint32_t rank, uint64_t i, uint32_t nranks, uint32_t root)
{
    (void)rank;
    (void)root;
    return (float)(nranks * i + 50 * nranks * (nranks - 1));
}

static float broadcast_given(uint32_t rank, uint64_t i)
{
    return (float)(100 * rank + i);
}

static float broadcast_want(uint32_t rank, uint64_t i, uint32_t nranks, uint32_t root)
{
    (void)rank;
    (void)nranks;
    return (float)(100 * root + i);
}

static float all_to_all_given(uint32_t rank, uint64_t i)
{
    return (float)(1000 * rank + 100 * (i / BLOCK) + i % BLOCK);
}

static float all_to_all_want(uint32_t rank, uint64_t i, uint32_t nranks, uint32_t root)
{
    (void)nranks;
    (void)root;
    return (float)(1000 * (i / BLOCK) + 100 * rank + i % BLOCK);
}

static float hello_want(uint32_t rank, uint64_t i, uint32_t nranks, uint32_t root)
{
    (void)nranks;
    (void)root;
    return (float)(100 * (rank ? rank - 1 : 0) + i);
}

static const struct golden goldens[] = {
    {"allreduce", 256, allreduce_given, allreduce_want},
    {"broadcast", 64, broadcast_given, broadcast_want},
    {"hello_send", 64, broadcast_given, hello_want}, /* by name: it has no contract */
    {"all_to_all", 0, all_to_all_given, all_to_all_want},
};

static bool run(const struct golden *g, const struct made *made, uint32_t root,
                struct peal_text *why)
{
    const struct peal_plan *plan = made->plan;
    uint32_t x = plan->contract ? plan->contract_in : 0;
    uint32_t y_buf = plan->contract ? plan->contract_out : 1;
    uint32_t nranks = plan->nranks;
    uint64_t n = made->sizes.n;
    struct peal_interp *in = peal_interp_new(nranks);
    bool good = false;
    if (peal_interp_launch(in, plan) != 0)
        goto free_interp;
    for (uint32_t r = 0; r < nranks; r++) {
        float *given = peal_interp_input(in, 0, r, x);
        for (uint64_t i = 0; i < n; i++)
            given[i] = g->given(r, i);
    }
    if (peal_interp_run(in, &(struct peal_interp_schedule){0}) != PEAL_INTERP_DONE) {
        peal_text_puts(why, peal_interp_why(in));
        goto free_interp;
    }
    for (uint32_t r = 0; r < nranks; r++) {
        const float *y = peal_interp_output(in, 0, r, y_buf);
        for (uint64_t i = 0; i < n; i++) {
            float want = g->want(r, i, nranks, root);
            if (y[i] == want)
                continue;
            peal_text_printf(why, "P=%u root=%u rank %u: y[%llu] = %g, want %g", nranks, root, r,
                             (unsigned long long)i, y[i], want);
            goto free_interp;
        }
    }
    good = true;
free_interp:
    peal_interp_free(in);
    return good;
}

static bool check_golden(const struct golden *g, const struct peal_kernel *kernel,
                         struct peal_text *why)
{
    struct signature signature = signature_of(kernel);
    for (uint32_t nranks = 2; nranks <= 16; nranks++) {
        uint32_t roots = signature.has_root ? nranks : 1;
        for (uint32_t root = 0; root < roots; root++) {
            struct variant v = {.nranks = nranks,
                                .n = g->count ? g->count : (uint64_t)BLOCK * nranks,
                                .dtype = PEAL_F32,
                                .reduce = PEAL_SUM,
                                .root = root};
            struct made made;
            bool good = case_make(&signature, &v, &made, why) && run(g, &made, root, why);
            made_release(&made);
            if (!good)
                return false;
        }
    }
    return true;
}

static struct answer check(const struct peal_kernel *kernel, bool full)
{
    (void)full;
    struct answer answer = {.skipped = true};
    const char *contract = kernel->implements ? kernel->implements : kernel->name;
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        if (strcmp(contract, goldens[i].contract) != 0)
            continue;
        answer.skipped = false;
        answer.good = check_golden(&goldens[i], kernel, &answer.why);
    }
    return answer;
}

int main(int argc, char **argv)
{
    (void)argc;
    return each_kernel(argv + 1, false, NULL, check);
}
