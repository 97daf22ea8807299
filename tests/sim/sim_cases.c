/* SPDX-License-Identifier: Apache-2.0 */
/* See sim_cases.h. */
#include "sim_cases.h"

#include "interp/origin.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stop(const char *failed, struct peal_diags *diags)
{
    struct peal_text text = {0};
    peal_diags_print(diags, false, &text);
    fail_msg("%s\n%s", failed, peal_text_get(&text));
}

static struct peal_plan *make(const struct case_plan *spec, bool may_refuse)
{
    struct peal_diags diags;
    struct peal_program *program = NULL;
    struct peal_plan *plan = NULL;
    peal_diags_init(&diags);
    enum peal_status status = spec->text ? peal_program_text("case.peal", spec->text,
                                                             strlen(spec->text), &diags, &program)
                                         : peal_program_open(spec->kernel, &diags, &program);
    if (status != PEAL_OK)
        stop(spec->kernel ? spec->kernel : "the case's kernel", &diags);
    const struct peal_kernel *kernel = peal_program_kernel(program, spec->kernel, &diags);
    if (!kernel)
        stop("no kernel", &diags);
    struct peal_plan_request request = {.kernel = kernel,
                                        .count = spec->count,
                                        .bind = {.nranks = spec->nranks,
                                                 .rank = PEAL_NONE,
                                                 .dtype = spec->dtype,
                                                 .root = spec->root,
                                                 .symmetric = true,
                                                 .channel_depth = spec->depth}};
    status = peal_plan_make(&request, &diags, &plan);
    if (status != PEAL_OK && !may_refuse)
        stop(spec->kernel ? spec->kernel : "the case's kernel", &diags);
    peal_program_close(program);
    peal_diags_release(&diags);
    return plan;
}

struct peal_plan *case_plan_make(const struct case_plan *spec)
{
    return make(spec, false);
}

struct peal_plan *case_plan_try(const struct case_plan *spec)
{
    return make(spec, true);
}

struct peal_machine *case_machine(const char *file, const char *settings)
{
    struct peal_diags diags;
    struct peal_machine *machine = NULL;
    char path[512], list[1024];
    peal_diags_init(&diags);
    snprintf(path, sizeof path, "%s/%s", PEAL_MACHINES, file);
    if (peal_machine_open(path, &diags, &machine) != PEAL_OK)
        stop(file, &diags);
    snprintf(list, sizeof list, "%s", settings ? settings : "");
    char *rest = NULL;
    const char *all[32];
    size_t count = 0;
    for (char *one = strtok_r(list, " ", &rest); one; one = strtok_r(NULL, " ", &rest))
        all[count++] = one;
    if (peal_machine_set(machine, all, count, &diags) != PEAL_OK)
        stop(settings, &diags);
    peal_diags_release(&diags);
    return machine;
}

const char case_late_credit[] = "kernel late(in x: T[n], out y: T[n], op: reduce) {\n"
                                "    let acc = x\n"
                                "    send x to (rank + 1) % nranks\n"
                                "    for s in 2 .. nranks {\n"
                                "        let t: T[n] = recv_slot from (rank - 1) % nranks\n"
                                "        send t to (rank + 1) % nranks\n"
                                "        acc = op(acc, t)\n"
                                "        free t\n"
                                "    }\n"
                                "    let last: T[n] = recv_slot from (rank - 1) % nranks\n"
                                "    y = op(acc, last)\n"
                                "    free last\n"
                                "}\n";

struct peal_sim *case_sim(const struct peal_plan *plan, const struct peal_machine *machine,
                          const struct peal_sim_options *options, const struct peal_sim_args *args,
                          uint32_t launches)
{
    struct peal_diags diags;
    struct peal_sim *sim = NULL;
    struct peal_sim_options none = {0};
    peal_diags_init(&diags);
    if (peal_sim_new(machine, plan->nranks, options ? options : &none, &diags, &sim) != PEAL_OK)
        stop("peal_sim_new", &diags);
    for (uint32_t i = 0; i < launches; i++) {
        if (peal_sim_launch(sim, plan, args, &diags) != PEAL_OK)
            stop("peal_sim_launch", &diags);
    }
    assert_int_equal(peal_sim_run(sim), PEAL_OK);
    peal_diags_release(&diags);
    return sim;
}

struct case_run case_run(const struct peal_plan *plan, const struct peal_machine *machine,
                         const struct peal_sim_options *options, uint32_t launches)
{
    struct peal_sim *sim = case_sim(plan, machine, options, NULL, launches);
    struct case_run run = {.stats = *peal_sim_stats(sim), .deadlock = peal_sim_deadlock(sim)};
    run.time = run.stats.time;
    uint64_t sum = 0;
    for (int i = 0; i < PEAL_CAUSE_COUNT; i++)
        sum += run.stats.causes[i];
    if (!run.deadlock)
        assert_int_equal(sum, run.time);
    peal_sim_free(sim);
    return run;
}

/* Inputs are small whole numbers, so that sums are exact in any order. */
static float input(uint32_t rank, uint64_t i)
{
    return (float)((rank * 7 + i * 3) % 61);
}

static uint64_t part_start(uint64_t n, uint32_t c, uint32_t k)
{
    return n * c / k;
}

static float reduced(uint32_t nranks, uint64_t i)
{
    float sum = 0;
    for (uint32_t r = 0; r < nranks; r++)
        sum += input(r, i);
    return sum;
}

struct buffers {
    const struct peal_plan *plan;
    void **table;
    uint32_t params;
};

static float *buffer(const struct buffers *b, uint32_t rank, uint32_t buf)
{
    const struct peal_buf *bufs = peal_plan_bufs(b->plan);
    if (bufs[buf].alias != PEAL_NONE)
        buf = bufs[buf].alias;
    return b->table[rank * b->params + bufs[buf].param];
}

static struct buffers make_buffers(const struct peal_plan *plan)
{
    struct buffers b = {.plan = plan};
    const struct peal_buf *bufs = peal_plan_bufs(plan);
    for (uint64_t i = 0; i < plan->bufs.count; i++) {
        if (bufs[i].kind == PEAL_BUF_PARAM && bufs[i].param >= b.params)
            b.params = bufs[i].param + 1;
    }
    b.table = calloc(plan->nranks * (size_t)b.params + 1, sizeof *b.table);
    for (uint32_t rank = 0; rank < plan->nranks; rank++)
        for (uint64_t i = 0; i < plan->bufs.count; i++) {
            if (bufs[i].kind != PEAL_BUF_PARAM)
                continue;
            uint64_t len = peal_plan_len(plan, rank, (uint32_t)i);
            float *at = malloc((len + 1) * 8);
            for (uint64_t e = 0; e < len; e++)
                at[e] = i == plan->contract_in ? input(rank, e) : -1;
            b.table[rank * b.params + bufs[i].param] = at;
        }
    return b;
}

/* Element i of y on this rank, by the contract; false: the contract says nothing about it. */
static bool expected(const struct peal_plan *plan, uint32_t rank, uint64_t i, float *out)
{
    uint32_t p = plan->nranks, root = plan->root == PEAL_NONE ? 0 : plan->root, piece = 0;
    struct origin o;
    if (!origin_find(plan->contract, rank, p, root, 0, &o))
        return false;
    uint64_t x = peal_plan_len(plan, root, plan->contract_in);
    uint64_t block = part_start(x, rank + 1, p) - part_start(x, rank, p);
    if (o.y_block != ORIGIN_WHOLE && o.x_block != ORIGIN_WHOLE) {
        piece = (uint32_t)(i / block);
        i %= block;
    } else if (o.y_block != ORIGIN_WHOLE) {
        uint64_t total = peal_plan_len(plan, root, plan->contract_out);
        while (part_start(total, piece + 1, p) <= i)
            piece++;
        i -= part_start(total, piece, p);
    }
    (void)origin_find(plan->contract, rank, p, root, piece, &o);
    if (o.x_block != ORIGIN_WHOLE)
        i += part_start(x, rank, p);
    *out = o.reduced ? reduced(o.reduced, i) : input(o.rank, i);
    return true;
}

void case_check(const struct peal_plan *plan, const struct peal_machine *machine,
                const struct peal_sim_options *options, uint32_t launches)
{
    struct buffers b = make_buffers(plan);
    struct peal_sim_args args = {.buffers = b.table};
    assert_int_equal(plan->dtype, PEAL_F32);
    struct peal_sim *sim = case_sim(plan, machine, options, &args, launches);
    if (peal_sim_deadlock(sim)) {
        struct peal_text text = {0};
        peal_sim_deadlock_print(sim, &text);
        fail_msg("%s", peal_text_get(&text));
    }
    assert_int_equal(peal_sim_sync(sim), PEAL_OK);
    bool has_result =
        plan->contract_out != PEAL_NONE && plan->contract != PEAL_CONTRACT_ALL_TO_ALL_V;
    uint32_t checked = has_result ? plan->nranks : 0;
    for (uint32_t rank = 0; rank < checked; rank++) {
        const float *y = buffer(&b, rank, plan->contract_out);
        for (uint64_t i = 0; i < peal_plan_len(plan, rank, plan->contract_out); i++) {
            float want;
            bool carried = peal_sim_carried(sim, plan, plan->contract_out, i);
            if (expected(plan, rank, i, &want) && carried && y[i] != want)
                fail_msg("%s: rank %u of %u, element %llu: %g, not %g",
                         peal_plan_string(plan, plan->kernel), rank, plan->nranks,
                         (unsigned long long)i, (double)y[i], (double)want);
        }
    }
    peal_sim_free(sim);
    for (size_t i = 0; i < plan->nranks * (size_t)b.params; i++)
        free(b.table[i]);
    free(b.table);
}
