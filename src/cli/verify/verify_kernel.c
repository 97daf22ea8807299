/* SPDX-License-Identifier: Apache-2.0 */
/* One kernel: a claim from the options, its proof with progress, the report. */
#include "cli/verify/verify_kernel.h"

#include "cli/page/page_file.h"
#include "cli/page/page_verify.h"
#include "cli/progress.h"
#include "cli/verify/require.h"
#include "cli/verify/sarif.h"
#include "cli/verify/verify_report.h"
#include "lang/lang.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool write_page(struct peal_cli *cli, const struct peal_claim *claim, const char *path,
                       const char *file)
{
    struct peal_page page;
    struct peal_page_answer *answers =
        peal_arena_alloc(cli->arena, (claim->ntasks + 1) * sizeof *answers);
    size_t n = 0;
    if (!answers) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        if (t->answer)
            answers[n++] =
                (struct peal_page_answer){t->answer, t->plan, (uint64_t)t->count, t->launched};
    }
    if (!n)
        return true; /* no plan could be made; the messages say why */
    peal_page_begin(cli, &page, PEAL_PAGE_VERIFY, claim->request.kernel->name, file);
    peal_page_verify(&page, answers, n);
    return peal_page_save(cli, &page, path);
}

/* Roughly how long a task takes compared with others. */
static uint64_t weigh(const struct peal_claim_task *task)
{
    return (uint64_t)task->nranks * task->nranks * (task->sequences ? 8 : 1);
}

static void step(void *progress, const struct peal_claim_task *task)
{
    peal_progress_step(progress, weigh(task));
}

/* After Ctrl-C: prints the finished rows. */
static void report_finished(void *opaque)
{
    struct peal_text out = {0};
    peal_verify_report_table(opaque, &out);
    fputs(peal_text_get(&out), stdout);
    peal_text_release(&out);
}

static int exit_code(enum peal_outcome verdict, bool allow_sample)
{
    if (verdict == PEAL_REFUTED)
        return PEAL_EXIT_NO;
    bool good = verdict == PEAL_PROVED || (verdict == PEAL_SAMPLED && allow_sample);
    if (good)
        return PEAL_EXIT_OK;
    return PEAL_EXIT_OTHER;
}

/* Reports which plans lack what --require names. True: some do. */
static bool lacks_required(const struct peal_claim *claim, uint32_t require)
{
    bool any = false;
    const struct peal_claim_task *last = NULL; /* that was reported */
    for (size_t i = 0; i < claim->ntasks; i++) {
        const struct peal_verification *v = claim->tasks[i].answer;
        const char *lacks = NULL;
        if (v)
            lacks = peal_require_lacks(require, v);
        if (!lacks)
            continue;
        any = true;
        bool again = last && last->nranks == claim->tasks[i].nranks &&
                     peal_require_lacks(require, last->answer) == lacks &&
                     last->answer->bits_why == v->bits_why;
        if (again) /* another count of the same ranks */
            continue;
        last = &claim->tasks[i];
        struct peal_text said = {0};
        peal_text_printf(&said, "peal verify: required at %u ranks, but %s", claim->tasks[i].nranks,
                         lacks);
        if (v->bits_why)
            peal_text_printf(&said, ": %s", v->bits_why);
        peal_text_puts(&said, "\n");
        peal_text_fold(&said, 0, 2, PEAL_TEXT_WIDTH);
        fputs(peal_text_get(&said), stderr);
        peal_text_release(&said);
    }
    return any;
}

/* One result for what is reported, and one for what is required and lacking. */
static void report_sarif(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const struct peal_claim *claim, const struct peal_forall *all,
                         const char *file)
{
    const struct peal_claim_task *failure = peal_claim_failure(claim);
    struct peal_text text = {0};
    struct peal_sarif_result r = {.path = file};
    uint32_t require = 0;
    (void)peal_require_parse(cli, o->require, &require); /* run() has checked it */
    const struct peal_verification *v = NULL;
    if (failure) {
        v = failure->answer;
        bool refuted = v->verdict == PEAL_REFUTED;
        struct peal_verify_place at = peal_sarif_place(v);
        bool here = at.line && strcmp(at.file, file) == 0;
        r.rule = refuted ? PEAL_SARIF_REFUTED : PEAL_SARIF_UNDECIDED;
        r.line = here ? at.line : claim->request.kernel->pos.line;
        r.col = here ? at.col : claim->request.kernel->pos.col;
        peal_text_printf(&text, "kernel '%s' at %u ranks: %s", claim->request.kernel->name,
                         failure->nranks,
                         refuted ? peal_fault_name(v->fault) : peal_outcome_name(v->verdict));
        if (v->why)
            peal_text_printf(&text, ": %s", v->why);
    }
    for (size_t i = 0; !text.len && i < claim->ntasks; i++) {
        const struct peal_claim_task *t = &claim->tasks[i];
        const char *lacks = t->answer ? peal_require_lacks(require, t->answer) : NULL;
        if (!lacks && !peal_claim_is_unknown(t))
            continue;
        r.rule = lacks ? PEAL_SARIF_REQUIRED : PEAL_SARIF_UNDECIDED;
        r.line = claim->request.kernel->pos.line;
        r.col = claim->request.kernel->pos.col;
        peal_text_printf(&text, "kernel '%s' at %u ranks: %s%s", claim->request.kernel->name,
                         t->nranks, lacks ? "required, but " : "no plan", lacks ? lacks : "");
    }
    if (!text.len && all && !all->proved) {
        r.rule = PEAL_SARIF_UNDECIDED;
        r.line = all->at.line ? all->at.line : claim->request.kernel->pos.line;
        r.col = all->at.line ? all->at.col : claim->request.kernel->pos.col;
        peal_text_printf(&text, "kernel '%s': not decided for all: %s", claim->request.kernel->name,
                         all->why);
    }
    if (!text.len)
        return;
    r.level = r.rule == PEAL_SARIF_UNDECIDED ? "warning" : "error";
    r.message = peal_text_get(&text);
    peal_sarif_result(o->results, &r);
    if (v)
        peal_sarif_flow(o->results, v, file, false);
    peal_json_object_end(o->results);
    peal_text_release(&text);
}

static void report_text(struct peal_cli *cli, const struct peal_claim *claim,
                        const struct peal_claim_sum *sum, const struct peal_forall *all,
                        struct peal_text *out)
{
    out->colors = cli->color;
    peal_verify_report_text(cli->arena, claim, sum, out);
    if (all)
        peal_verify_all_text(claim, sum, all, out);
}

/* several: NULL, or the other kernels of the file. Then a proved one is only a line in it. */
static int report(struct peal_cli *cli, const struct peal_verify_settings *o,
                  const struct peal_claim *claim, const struct peal_forall *all,
                  struct peal_verify_lines *several)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    struct peal_text out = {0};
    uint32_t require = 0;
    (void)peal_require_parse(cli, o->require, &require); /* run() has checked it */
    int code = exit_code(peal_claim_verdict(&sum), o->allow_sample);
    if (all && code == PEAL_EXIT_OK && !all->proved)
        code = PEAL_EXIT_OTHER;
    if (peal_claim_is_unmet(&sum))
        code = PEAL_EXIT_NO;
    if (several && o->json) {
        peal_verify_report_json(claim, &sum, all, several->json);
    } else if (several) {
        several->lines.colors = cli->color;
        peal_verify_report_line(cli->arena, claim, &sum, all, &several->lines);
        if (code != PEAL_EXIT_OK)
            report_text(cli, claim, &sum, all, &out);
    } else if (o->json) {
        struct peal_json json;
        peal_json_init(&json, &out, PEAL_JSON_ONE_LINE);
        peal_verify_report_json(claim, &sum, all, &json);
        peal_text_puts(&out, "\n");
    } else {
        report_text(cli, claim, &sum, all, &out);
    }
    if (several && out.len)
        peal_text_puts(&out, "\n");
    code = peal_cli_print(cli, &out, code);
    if (lacks_required(claim, require) && code != PEAL_EXIT_OTHER)
        code = PEAL_EXIT_NO;
    return code;
}

static void report_ended(struct peal_cli *cli, const struct peal_verify_settings *o,
                         const struct peal_claim *claim, const struct peal_forall *all, int code)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    struct peal_text line = {0};
    peal_verify_report_line(cli->arena, claim, &sum, all, &line);
    o->watch->ended(o->watch->context, claim->request.kernel->name, code, peal_text_get(&line));
    peal_text_release(&line);
}

uint32_t peal_verify_workers(const struct peal_verify_settings *o)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    if (o->jobs)
        return (uint32_t)o->jobs;
    if (cores > 0)
        return (uint32_t)cores;
    return 1;
}

/* --nodes, and -m for a kernel that asks for its place, place one number of ranks. False after a
 * message. */
static bool claim_nodes(const struct peal_cli *cli, const struct peal_verify_settings *o,
                        struct peal_claim *claim)
{
    const struct peal_ints *ranks = &o->kernel.ranks;
    if (!claim->request.bind.nranks)
        return true;
    if (ranks->len > 1 && claim->request.bind.nodes) {
        const char *where = o->kernel.nodes ? o->kernel.nodes : o->kernel.machine;
        peal_cli_usage(cli, "%s %s places %u ranks: it goes with that number alone",
                       o->kernel.nodes ? "--nodes" : "-m", where, claim->request.bind.nranks);
        return false;
    }
    if (ranks->len > 1)
        return true;
    if (ranks->len)
        return peal_kernel_places(cli, &o->kernel, claim->request.bind.nranks, ranks->at[0]);
    int64_t *placed = peal_arena_alloc(cli->arena, sizeof *placed);
    if (!placed) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    *placed = claim->request.bind.nranks;
    claim->ranks = placed;
    claim->nranks = 1;
    return true;
}

/* -n all: the numbers of ranks and the count that a proof for all starts from. A kernel of no class
 * is verified for a few ranks, so that there is some answer; but the reason is known by now, and is
 * told before, and exploring ends early. False: out of memory. */
static bool ask_for_all(struct peal_cli *cli, const struct peal_kernel *kernel,
                        const struct peal_forall *all, struct peal_claim *claim)
{
    enum { FEW_STATES = 200000 };
    if (all->in == PEAL_FORALL_NONE) {
        struct peal_text said = {0};
        peal_text_printf(&said, "peal verify: no proof of '%s' for all\n  line %u: %s\n",
                         kernel->name, all->at.line, all->why);
        peal_text_fold(&said, 0, 4, PEAL_TEXT_WIDTH);
        fputs(peal_text_get(&said), stderr);
        peal_text_release(&said);
        if (!claim->verify.max_states)
            claim->verify.max_states = FEW_STATES;
        return true;
    }
    int64_t *at = peal_arena_alloc(cli->arena, (all->cutoff + 1) * sizeof *at);
    if (!at)
        return false;
    for (uint32_t i = 0; i < all->cutoff; i++)
        at[i] = i + 1;
    at[all->cutoff] = peal_forall_count(all);
    claim->ranks = at;
    claim->nranks = all->cutoff;
    claim->counts = at + all->cutoff;
    claim->ncounts = 1;
    return true;
}

/* After the proofs for few ranks: the rest, and the certificate. False after a message. */
static bool finish_all(struct peal_cli *cli, const struct peal_verify_settings *o,
                       const struct peal_claim *claim, struct peal_forall *all)
{
    struct peal_source given = {0};
    struct peal_text text = {0};
    if (o->check && !peal_cli_read(cli, o->check, &given))
        return false;
    peal_text_add(&text, peal_text_or_empty(given.text), given.len);
    bool good = !text.failed;
    if (good)
        peal_forall_finish(all, claim, o->check ? peal_text_get(&text) : NULL);
    peal_text_release(&text);
    if (!good)
        return peal_cli_fail(cli, "out of memory") == PEAL_EXIT_OK;
    if (!o->certificate || !all->proved)
        return true;
    if (all->certificate.len)
        return peal_cli_write(cli, o->certificate, &all->certificate);
    fprintf(stderr, "peal verify: no certificate: the proof for a %s needs none\n",
            peal_forall_class_name(all->in));
    return true;
}

/* What the options say, but for the kernel. */
static void take_settings(const struct peal_verify_settings *o, struct peal_claim *out)
{
    *out = (struct peal_claim){
        .verify = {.launches = (uint32_t)o->launches,
                   .max_states = (uint64_t)o->states,
                   .max_bytes = o->memory,
                   .advice = o->advice,
                   .pairwise = o->order == PEAL_ORDER_PAIRWISE,
                   .plain = o->plain},
        .quick = o->quick,
        .alone = o->alone || o->launches == 1,
        .flush = o->flush,
        .keep_plans = o->html != NULL,
        .workers = peal_verify_workers(o),
    };
    if (o->kernel.ranks.len) {
        out->ranks = o->kernel.ranks.at;
        out->nranks = o->kernel.ranks.len;
    }
    if (o->kernel.counts.len) {
        out->counts = o->kernel.counts.at;
        out->ncounts = o->kernel.counts.len;
    }
}

/* The kernel, and what depends on it. False after a message. */
static bool take_kernel(struct peal_cli *cli, const struct peal_verify_settings *o,
                        const struct peal_kernel *kernel, struct peal_claim *claim)
{
    if (!peal_kernel_request(cli, kernel, &o->kernel, &claim->request) ||
        !claim_nodes(cli, o, claim))
        return false;
    claim->request.bind.no_fuse = o->advice; /* so that there is a place between any two lines */
    if (!o->no_cache && !o->advice && !o->plain)
        claim->cache = peal_cache_folder(cli->arena);
    return true;
}

bool peal_verify_prove(struct peal_cli *cli, const struct peal_verify_settings *o,
                       const struct peal_kernel *kernel, struct peal_claim *out)
{
    take_settings(o, out);
    if (!take_kernel(cli, o, kernel, out))
        return false;
    if (peal_claim_begin(out) != PEAL_OK) {
        peal_cli_fail(cli, "out of memory");
        return false;
    }
    peal_claim_run(out);
    if (o->advice)
        peal_claim_judge_advice(out);
    return true;
}

int peal_verify_kernel(struct peal_cli *cli, const struct peal_verify_settings *o,
                       const struct peal_kernel *kernel, const char *file,
                       struct peal_verify_lines *several)
{
    struct peal_claim claim;
    take_settings(o, &claim);
    struct peal_progress progress = {.label = "plans"};
    struct peal_forall all = {0}, *asked = o->kernel.ranks.all ? &all : NULL;
    if (asked)
        all = peal_forall_classify(kernel);
    if (asked && !ask_for_all(cli, kernel, &all, &claim))
        return peal_cli_fail(cli, "out of memory");
    if (!take_kernel(cli, o, kernel, &claim))
        return PEAL_EXIT_USAGE;
    if (peal_claim_begin(&claim) != PEAL_OK)
        return peal_cli_fail(cli, "out of memory");
    uint32_t claims = 1;
    if (asked)
        claims = peal_forall_claims(&all);
    claim.done = step;
    claim.done_with = &progress;
    progress.total = claim.ntasks * claims;
    for (size_t i = 0; i < claim.ntasks; i++)
        progress.weight += weigh(&claim.tasks[i]) * claims;
    progress.report = report_finished;
    if (o->json)
        progress.report = NULL;
    progress.context = &claim;
    peal_progress_begin(&progress);
    peal_claim_run(&claim);
    if (o->advice)
        peal_claim_judge_advice(&claim);
    bool finished = !asked || finish_all(cli, o, &claim, &all);
    if (finished && !o->kernel.op.given && peal_claim_try_operations(&claim) != PEAL_OK)
        finished = peal_cli_fail(cli, "out of memory") == PEAL_EXIT_OK;
    peal_progress_end(&progress);
    int code = PEAL_EXIT_OTHER;
    const struct peal_claim *shown = peal_claim_shown(&claim);
    if (claim.other && all.proved) {
        all.proved = false;
        snprintf(all.why, sizeof all.why, "wrong for %s",
                 peal_reduce_name(claim.other->request.bind.reduce));
    }
    if (finished)
        code = report(cli, o, shown, asked, several);
    if (finished && o->results)
        report_sarif(cli, o, shown, asked, file);
    if (finished && o->watch)
        report_ended(cli, o, shown, asked, code);
    if (finished && o->html && !write_page(cli, shown, o->html, file))
        code = PEAL_EXIT_OTHER;
    peal_forall_release(&all);
    peal_claim_release(&claim);
    return code;
}
