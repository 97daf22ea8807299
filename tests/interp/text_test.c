/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter on small kernels, one for each feature that the collectives do not use: accumulate,
 * lanes, rows and columns, raw cells, elementwise functions, shared cells. */
#include "base/tests/unit.h"
#include "interp/interp.h"
#include "plan/tests/made.h"

#include <stdio.h>

enum { LEN = 4, RANKS = 3 };

/* x[i] = 10 rank + i on every rank; y is checked on the last one, after the third launch. */
static const struct {
    int line;
    const char *text;
    float want[LEN];
} rows[] = {
    {__LINE__,
     "kernel accumulate(in x: f32[4], out y: f32[4]) {\n"
     "    window total: f32[4]  signal here[nranks], done[nranks]\n"
     "    if rank == 0 { total = fill(1, 4) }\n"
     "    for p in peers { notify here[rank]@p += 1 }\n"
     "    for p in peers { wait here[p] >= 1 }\n"
     "    total@0 += x\n"
     "    for p in peers { notify here[rank]@p += 1 }\n"
     "    for p in peers { wait here[p] >= 2 }\n"
     "    y = total@0\n"
     "    for p in peers { notify done[rank]@p += 1 }\n"
     "    for p in peers { wait done[p] >= 1 }\n"
     "}\n",
     {31, 34, 37, 40}},
    {__LINE__,
     "kernel lanes(in x: f32[4], out y: f32[4]) {\n"
     "    private kept: f32[4]  signal full\n"
     "    lane { wait full >= 2  y = add(kept, kept) }\n"
     "    lane { kept = x  notify full@rank += 2 }\n"
     "}\n",
     {40, 42, 44, 46}},
    {__LINE__,
     "kernel columns(in x: f32[2, 2], out y: f32[2, 2]) {\n"
     "    private t: f32[2, 2]\n"
     "    t[:, 0 +: 1] = x[:, 1 +: 1]\n"
     "    t[:, 1 +: 1] = x[:, 0 +: 1]\n"
     "    y[0] = t[1]\n"
     "    y[1] = t[0]\n"
     "}\n",
     {23, 22, 21, 20}},
    {__LINE__,
     "kernel raw_cells(in x: f32[4], out y: f32[4]) {\n"
     "    signal raw count\n"
     "    let before = peek count\n"
     "    notify count@rank += 2\n"
     "    wait count == before + 2\n"
     "    y = x\n"
     "}\n",
     {20, 21, 22, 23}},
    {__LINE__,
     "kernel functions(in x: f32[4], out y: f32[4]) {\n"
     "    let half = mul(x, fill(0.5, 4))\n"
     "    y = clamp(fma(half, x, neg(x)), fill(181, 4), fill(220, 4))\n"
     "}\n",
     {181, 199.5F, 220, 220}},
    {__LINE__,
     "kernel shared_cells(in x: f32[4], out y: f32[4]) {\n"
     "    window slot: f32[2 * 4]  signal shared here\n"
     "    slot[launch mod 2 * 4 +: 4] = x\n"
     "    for p in peers { notify here@p += 1 }\n"
     "    wait here >= nranks - 1\n"
     "    y = slot@0[launch mod 2 * 4 +: 4]\n"
     "}\n",
     {0, 1, 2, 3}},
};

static struct peal_plan *make(const char *text)
{
    struct made m;
    made_begin(&m, text);
    struct peal_plan *plan =
        made_plan(&m, (struct peal_bind){.nranks = RANKS, .rank = PEAL_NONE, .dtype = PEAL_F32}, 0);
    made_end(&m);
    return plan;
}

TEST(kernels_give_what_their_text_says)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_plan *plan = make(rows[i].text);
        if (!plan)
            fail_msg("line %d: no plan", rows[i].line);
        struct peal_interp *in = peal_interp_new(RANKS);
        for (size_t l = 0; l < 3; l++) {
            assert_int_equal(peal_interp_launch(in, plan), l);
            for (uint32_t r = 0; r < RANKS; r++) {
                for (int k = 0; k < LEN; k++)
                    ((float *)peal_interp_input(in, l, r, 0))[k] = (float)(10 * r) + (float)k;
            }
        }
        for (uint32_t t = 0; t < 40; t++) {
            struct peal_interp_schedule s = {(enum peal_interp_order)(t % 4), t, t / 4};
            if (peal_interp_run(in, &s) != PEAL_INTERP_DONE)
                fail_msg("line %d: %s", rows[i].line, peal_interp_why(in));
            const float *y = peal_interp_output(in, 2, RANKS - 1, 1);
            for (int k = 0; k < LEN; k++) {
                if (y[k] != rows[i].want[k])
                    fail_msg("line %d, try %u: y[%d] is %g", rows[i].line, t, k, y[k]);
            }
        }
        peal_interp_free(in);
        free(plan);
    }
}

int main(void)
{
    return unit_run();
}
