/* SPDX-License-Identifier: Apache-2.0 */
/* The tasks of peal verify FILE...; see files.h.
 *
 * Each worker takes the next file and does everything with it: no two workers share a task, and
 * reports read a task only once `finished` is set. Texts that outlive the task are in its arena.
 */
#include "cli/import/files.h"

#include "cli/import/files_program.h"
#include "cli/page/page_file.h"
#include "cli/page/page_verify.h"
#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILE_BYTES = 1 << 30, DEEP = 65536 };

/* --- one file -------------------------------------------------------------------------------- */

static const char *keep(struct peal_file_task *task, const char *text)
{
    const char *copy = NULL;
    if (text)
        copy = peal_arena_copy(&task->arena, text, strlen(text));
    if (copy)
        return copy;
    return "";
}

/* The diagnostics as text, made while the text that they point into exists. */
static const char *keep_diags(struct peal_file_task *task, enum peal_status status,
                              const struct peal_diags *diags)
{
    struct peal_text text = {0};
    if (diags->list.len)
        peal_diags_print(diags, false, &text);
    else
        peal_text_printf(&text, "%s: %s\n", task->path, peal_status_text(status));
    const char *kept = keep(task, peal_text_get(&text));
    peal_text_release(&text);
    return kept;
}

/* The whole file, to be freed. NULL: the reason is kept. */
static char *read_text(struct peal_file_task *task)
{
    char why[256], *text = NULL;
    FILE *file = fopen(task->file, "rb");
    struct stat info;
    size_t got = 0;
    if (file && fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_size <= MAX_FILE_BYTES) {
        text = malloc((size_t)info.st_size + 1);
        got = 0;
        if (text)
            got = fread(text, 1, (size_t)info.st_size, file);
    } else if (file && !errno) {
        errno = EINVAL;
    }
    if (!text || ferror(file)) {
        snprintf(why, sizeof why, "%.180s: %s\n", task->path,
                 file && errno == EINVAL ? "not a file of at most 1G" : strerror(errno));
        task->unreadable = keep(task, why);
        free(text);
        text = NULL;
    }
    if (file)
        fclose(file);
    if (text) {
        text[got] = '\0';
        task->source.text = text;
        task->source.len = got;
    }
    return text;
}

/* The FIFO depth that a plan that deadlocks would need. */
static void find_depth(const struct peal_files_job *job, const struct peal_import *import,
                       struct peal_import_options options, struct peal_file_run *run)
{
    struct peal_verification *deep = NULL;
    struct peal_plan *plan = NULL;
    struct peal_verify_options only = job->verify;
    only.no_story = only.no_result = true;
    options.depth = DEEP;
    if (run->answer->fault != PEAL_FAULT_DEADLOCK || !peal_import_facts(import)->depth)
        return;
    enum peal_status status = peal_import_plan(import, &options, NULL, &plan);
    if (status == PEAL_OK)
        status = peal_verify_plan(plan, &only, &deep);
    if (status == PEAL_OK)
        run->never = deep->verdict == PEAL_REFUTED && deep->fault == PEAL_FAULT_DEADLOCK;
    peal_verification_free(deep);
    deep = NULL;
    if (status == PEAL_OK && !run->never)
        status = peal_verify_cached(plan, &job->verify, job->cache, &deep);
    if (deep && deep->verdict == PEAL_PROVED)
        run->least_depth = deep->least_depth;
    peal_verification_free(deep);
    free(plan);
}

/* Large calls send steps of several chunks piece by piece. If that is refuted, it is the answer;
 * otherwise it may need deeper FIFOs. */
static void verify_pieces(const struct peal_files_job *job, const struct peal_import *import,
                          struct peal_import_options options, struct peal_file_run *run)
{
    struct peal_verification *answer = NULL;
    struct peal_plan *plan = NULL;
    if (!peal_import_facts(import)->sends_pieces || run->answer->verdict != PEAL_PROVED)
        return;
    options.pieces = true;
    enum peal_status status = peal_import_plan(import, &options, NULL, &plan);
    if (status == PEAL_OK)
        status = peal_verify_cached(plan, &job->verify, job->cache, &answer);
    free(plan);
    if (status != PEAL_OK)
        return;
    if (answer->verdict == PEAL_PROVED) {
        if (answer->least_depth > run->answer->least_depth)
            run->answer->least_depth = answer->least_depth;
        peal_verification_free(answer);
        return;
    }
    peal_verification_free(run->answer);
    run->answer = answer;
    run->pieces = true;
    find_depth(job, import, options, run);
}

/* Verifies the plan; if calls of a program that are alike are not proved for any number of launches, for as many as were
 * asked for. */
static enum peal_status prove(const struct peal_files_job *job,
                              const struct peal_import_facts *facts, const struct peal_plan *plan,
                              struct peal_verification **out)
{
    struct peal_verify_options options = job->verify;
    enum peal_status status = peal_verify_cached(plan, &options, job->cache, out);
    uint32_t period = facts->period, launches = 0;
    if (status == PEAL_OK && period && !options.launches)
        launches = (facts->calls + period - 1) / period;
    if (!launches || (*out)->verdict != PEAL_PROVED || (*out)->reuse >= PEAL_REUSE_REPEATABLE ||
        (*out)->launches >= launches)
        return status;
    peal_verification_free(*out);
    options.launches = launches;
    return peal_verify_cached(plan, &options, job->cache, out);
}

static void verify_way(const struct peal_files_job *job, struct peal_file_task *task,
                       const struct peal_import *import, struct peal_import_options options)
{
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    struct peal_file_run run = {.in_place = options.place == PEAL_PLACE_IN,
                                .count = options.count ? options.count : peal_import_count(import)};
    peal_diags_init(&diags);
    enum peal_status status = peal_import_plan(import, &options, &diags, &plan);
    if (status == PEAL_OK)
        status = prove(job, &task->facts, plan, &run.answer);
    if (status == PEAL_OK && task->facts.varies && run.answer->verdict == PEAL_PROVED) {
        run.answer->verdict = PEAL_UNDECIDED;
        run.answer->why = task->facts.varies;
    }
    if (status == PEAL_OK) {
        find_depth(job, import, options, &run);
        verify_pieces(job, import, options, &run);
        if (run.answer->wrong.buf) {
            struct peal_pos pos = peal_import_rank_pos(import, run.answer->wrong.rank);
            run.gpu_line = pos.line;
            run.gpu_col = pos.col;
        }
        if (task->facts.is_program)
            peal_program_place_steps(task, &run, plan);
    } else {
        run.why = keep_diags(task, status, &diags);
        run.refused = status == PEAL_UNSUPPORTED;
    }
    if (job->keep_plans && run.answer)
        run.plan = plan;
    else
        free(plan);
    peal_diags_release(&diags);
    if (!peal_vec_push(&task->runs, run)) {
        free(run.plan);
        peal_verification_free(run.answer);
    }
}

/* Every place and count that the options or else the file demand. */
void peal_files_verify_ways(const struct peal_files_job *job, struct peal_file_task *task,
                            const struct peal_import *import)
{
    const struct peal_kernel_options *o = job->options;
    const struct peal_import_facts *facts = peal_import_facts(import);
    struct peal_import_options options = {
        .depth = (uint32_t)o->depth,
        .slot_bytes = o->slot_bytes,
        .dtype = o->dtype,
        .reduce = o->op.reduce,
        .has_root = peal_kernel_root(o) > 0,
        .root = (uint32_t)peal_kernel_root(o),
        .lenient = true,
    };
    bool in = o->in_place || facts->in_place;
    bool out = !o->in_place && (facts->out_of_place || !facts->in_place);
    for (size_t i = 0; i < (o->counts.len ? o->counts.len : 1); i++) {
        options.count = 0;
        if (o->counts.len)
            options.count = (uint64_t)o->counts.at[i];
        options.place = PEAL_PLACE_OUT;
        if (out)
            verify_way(job, task, import, options);
        options.place = PEAL_PLACE_IN;
        if (in)
            verify_way(job, task, import, options);
    }
}

static void keep_facts(struct peal_file_task *task, const struct peal_import *import)
{
    task->facts = *peal_import_facts(import);
    task->facts.name = keep(task, task->facts.name);
    task->facts.collective = keep(task, task->facts.collective);
    task->facts.protocol = keep(task, task->facts.protocol);
    if (task->facts.varies) {
        task->facts.varies = keep(task, task->facts.varies);
        task->facts.varies_file = keep(task, task->facts.varies_file);
    }
}

static void verify_file(const struct peal_files_job *job, struct peal_file_task *task)
{
    struct peal_diags diags;
    struct peal_import *import = NULL;
    char *text = read_text(task);
    if (!text)
        return;
    peal_diags_init(&diags);
    enum peal_status status = peal_import_open(&task->source, &diags, &import);
    if (status != PEAL_OK) {
        task->unreadable = keep_diags(task, status, &diags);
        if (diags.list.len) {
            task->fault_line = diags.list.at[0].pos.line;
            task->fault_col = diags.list.at[0].pos.col;
        }
    } else {
        const struct peal_ints *ranks = &job->options->ranks;
        keep_facts(task, import);
        task->wrong_ranks = ranks->len && (ranks->len > 1 || ranks->at[0] != task->facts.nranks);
        uint32_t least = 0;
        if (!task->wrong_ranks)
            peal_files_verify_ways(job, task, import);
        for (size_t i = 0; i < task->runs.len; i++) {
            const struct peal_file_run *run = &task->runs.at[i];
            uint32_t depth = run->least_depth;
            if (run->answer && run->answer->verdict == PEAL_PROVED)
                depth = run->answer->least_depth;
            if (depth > least)
                least = depth;
        }
        peal_import_judge(import, least, &task->findings);
        if (job->find_fixes && !task->wrong_ranks) {
            peal_files_find_fixes(job, task);
            peal_files_use_fixes(job, task);
        }
    }
    peal_import_close(import);
    peal_diags_release(&diags);
    task->source.text = NULL;
    task->source.len = 0;
    free(text);
}

/* --- all files ------------------------------------------------------------------------------- */

struct file_batch {
    struct peal_files_job *job;
    struct peal_progress *progress;
};

static void verify_next(void *context, size_t i)
{
    const struct file_batch *batch = context;
    struct peal_file_task *task = &batch->job->tasks[i];
    verify_file(batch->job, task);
    /* release: partner is the acquire in files_report.c */
    atomic_store_explicit(&task->finished, true, memory_order_release);
    peal_progress_step(batch->progress, task->bytes);
}

static void verify_all(struct peal_files_job *job, struct peal_progress *progress)
{
    struct file_batch batch = {.job = job, .progress = progress};
    if (job->ntasks == 1) /* the analyses of one large plan use the cores instead */
        job->verify.workers = job->workers;
    peal_parallel(job->workers, job->ntasks, verify_next, &batch);
}

static void report_finished(void *opaque)
{
    struct peal_text out = {0};
    peal_files_report_table(opaque, &out);
    fputs(peal_text_get(&out), stdout);
    peal_text_release(&out);
}

static bool make_tasks(struct peal_cli *cli, struct peal_files_job *job, char **paths, int npaths,
                       struct peal_progress *progress)
{
    job->ntasks = (size_t)npaths;
    job->tasks = peal_arena_alloc(cli->arena, job->ntasks * sizeof *job->tasks);
    if (!job->tasks)
        return false;
    for (size_t i = 0; i < job->ntasks; i++) {
        struct peal_file_task *task = &job->tasks[i];
        struct stat info;
        task->file = paths[i];
        task->path = job->origin ? job->origin : paths[i];
        task->source.name = task->path;
        task->bytes = 1;
        if (stat(paths[i], &info) == 0)
            task->bytes = (uint64_t)info.st_size;
        progress->weight += task->bytes;
        peal_arena_init(&task->arena, 0);
        peal_findings_init(&task->findings);
    }
    progress->total = job->ntasks;
    return true;
}

void peal_files_release_task(struct peal_file_task *task)
{
    for (size_t k = 0; k < task->runs.len; k++) {
        peal_verification_free(task->runs.at[k].answer);
        free(task->runs.at[k].plan);
    }
    peal_vec_release(&task->runs);
    peal_findings_release(&task->findings);
    peal_arena_release(&task->arena);
}

static void free_tasks(struct peal_files_job *job)
{
    for (size_t i = 0; i < job->ntasks; i++)
        peal_files_release_task(&job->tasks[i]);
}

static struct peal_files_tally count_files(const struct peal_files_job *job)
{
    struct peal_files_tally t = {0};
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        bool refuted = false, undecided = false, unreadable = task->unreadable || task->wrong_ranks;
        bool lacking = false;
        for (size_t k = 0; k < task->runs.len; k++) {
            const struct peal_verification *v = task->runs.at[k].answer;
            unreadable = unreadable || !v;
            undecided = undecided || task->runs.at[k].refused;
            if (!v)
                continue;
            refuted = refuted || v->verdict == PEAL_REFUTED;
            undecided = undecided || v->verdict == PEAL_UNDECIDED;
            lacking = lacking || peal_require_lacks(job->require, v);
            t.ops += v->ops;
            t.ms += v->milliseconds;
        }
        t.refuted += refuted;
        t.undecided += undecided && !refuted;
        t.unreadable += unreadable && !undecided && !refuted;
        t.proved += !refuted && !undecided && !unreadable;
        t.lacking += lacking;
    }
    return t;
}

static int exit_code(const struct peal_files_tally *t)
{
    if (t->refuted || t->lacking)
        return PEAL_EXIT_NO;
    if (t->undecided || t->unreadable)
        return PEAL_EXIT_OTHER;
    return PEAL_EXIT_OK;
}

/* A page with all answers. */
static bool write_page(const struct peal_cli *cli, const struct peal_files_job *job,
                       const char *html)
{
    struct peal_page page;
    size_t n = 0;
    for (size_t i = 0; i < job->ntasks; i++)
        n += job->tasks[i].runs.len;
    struct peal_page_answer *answers = peal_arena_alloc(cli->arena, (n + 1) * sizeof *answers);
    n = 0;
    for (size_t i = 0; answers && i < job->ntasks; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        for (size_t k = 0; k < task->runs.len; k++) {
            const struct peal_file_run *run = &task->runs.at[k];
            if (run->answer)
                answers[n++] = (struct peal_page_answer){
                    .verification = run->answer, .plan = run->plan, .count = run->count};
        }
    }
    if (!n) {
        peal_cli_note(cli, "no page: there is no plan to show");
        return true;
    }
    const struct peal_file_task *first = &job->tasks[0];
    peal_page_begin(cli, &page, PEAL_PAGE_VERIFY, first->facts.name, first->path);
    peal_page_verify(&page, answers, n);
    return peal_page_save(cli, &page, html);
}

int peal_verify_files(struct peal_cli *cli, struct peal_files_job *job,
                      const struct peal_files_out *out, char **paths, int npaths)
{
    struct peal_progress progress = {.label = "files"};
    struct peal_text text = {.colors = cli->color && !out->json};
    if (!make_tasks(cli, job, paths, npaths, &progress))
        return peal_cli_fail(cli, "out of memory");
    progress.report = report_finished;
    if (out->json)
        progress.report = NULL;
    progress.context = job;
    peal_progress_begin(&progress);
    verify_all(job, &progress);
    peal_progress_end(&progress);
    if (job->cli && peal_program_is(job)) {
        peal_program_ask_for_all_calls(job);
        peal_program_find_fix(job);
    }
    struct peal_files_tally t = count_files(job);
    int code = exit_code(&t);
    if (job->ntasks == 1 && job->tasks[0].wrong_ranks) {
        const struct peal_import_facts *facts = &job->tasks[0].facts;
        code = peal_cli_usage(cli, "'%s' is for %u ranks; --ranks cannot change that", facts->name,
                              facts->nranks);
        free_tasks(job);
        return code;
    }
    if (out->json)
        peal_files_report_json(job, &t, &text);
    else
        peal_files_report_text(job, &t, &text);
    if (job->cli && job->fix)
        peal_program_fix(job, out->json ? NULL : &text);
    code = peal_cli_print(cli, &text, code);
    if (out->html && !write_page(cli, job, out->html))
        code = PEAL_EXIT_OTHER;
    if (out->results)
        peal_files_report_sarif(job, out->results);
    free_tasks(job);
    return code;
}
