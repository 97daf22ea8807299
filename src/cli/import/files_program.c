/* SPDX-License-Identifier: Apache-2.0 */
/* See files_program.h. */
#include "cli/import/files_program.h"

#include "cli/record/story.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- where steps belong ---------------------------------------------------------------------- */

/* The call of the program that does the op, counted from 1; 0: none. */
static uint32_t call_of(const struct peal_plan *plan, const struct peal_op *op)
{
    const struct peal_position *all = peal_plan_positions(plan);
    if (op->pos == PEAL_NONE || all[op->pos].via == PEAL_NONE)
        return 0;
    const struct peal_position *call = &all[all[op->pos].via];
    return strcmp(peal_plan_string(plan, call->source), PEAL_RECORD_CALL) == 0 ? call->line : 0;
}

/* A lane's name in the author's words: "p3" is program 3, "s1p3" of stream 1, "p3.t5" its thread 5. */
static void put_lane(const char *name, size_t len, struct peal_text *out)
{
    uint32_t stream = 0, program, thread;
    int end = 0;
    char text[64];
    if (len >= sizeof text)
        len = sizeof text - 1;
    memcpy(text, name, len);
    text[len] = '\0';
    const char *at = text;
    if (sscanf(at, "s%u%n", &stream, &end) == 1)
        at += end;
    if (sscanf(at, "p%u%n", &program, &end) != 1) {
        peal_text_puts(out, text);
        return;
    }
    at += end;
    if (stream)
        peal_text_printf(out, "stream %u ", stream);
    peal_text_printf(out, "program %u", program);
    if (sscanf(at, ".t%u", &thread) == 1)
        peal_text_printf(out, " thread %u", thread);
}

/* The names of lanes, from the lines `rank R` and `lane L NAME` of the recording. */
static void find_lanes(struct peal_file_task *task, struct peal_file_run *run)
{
    const struct peal_verification *v = run->answer;
    unsigned long rank = 0;
    for (const char *at = task->source.text, *end; at && *at; at = end ? end + 1 : NULL) {
        end = strchr(at, '\n');
        if (strncmp(at, "rank ", 5) == 0)
            rank = strtoul(at + 5, NULL, 10);
        if (strncmp(at, "lane ", 5) != 0)
            continue;
        char *name;
        unsigned long lane = strtoul(at + 5, &name, 10);
        for (uint32_t i = 0; i < v->nsteps; i++) {
            if (v->steps[i].rank != rank || v->steps[i].lane != lane || run->steps[i].lane ||
                *name != ' ')
                continue;
            struct peal_text text = {0};
            put_lane(name + 1, strcspn(name + 1, "\n"), &text);
            run->steps[i].lane = peal_arena_copy(&task->arena, peal_text_get(&text), text.len);
            peal_text_release(&text);
        }
    }
}

void peal_program_place_steps(struct peal_file_task *task, struct peal_file_run *run,
                              const struct peal_plan *plan)
{
    const struct peal_verification *v = run->answer;
    for (uint32_t r = 0; r < plan->nranks; r++)
        run->several_lanes |= peal_plan_lane_count(plan, r) > 1;
    if (!v->nsteps)
        return;
    run->steps = peal_arena_alloc(&task->arena, v->nsteps * sizeof *run->steps);
    for (uint32_t i = 0; run->steps && i < v->nsteps; i++) {
        const struct peal_verify_step *s = &v->steps[i];
        run->steps[i] = (struct peal_step_place){0};
        if (s->op == PEAL_NONE || s->rank >= plan->nranks ||
            s->lane >= peal_plan_lane_count(plan, s->rank))
            continue;
        const struct peal_lane *lane = peal_plan_lane(plan, s->rank, s->lane);
        if (s->op < lane->ops)
            run->steps[i].call = call_of(plan, &peal_plan_ops(plan)[lane->first_op + s->op]);
        if (run->steps[i].call)
            run->steps[i].call += s->launch * task->facts.period;
    }
    if (run->steps)
        find_lanes(task, run);
}

/* --- words ----------------------------------------------------------------------------------- */

bool peal_program_is(const struct peal_files_job *job)
{
    for (size_t i = 0; i < job->ntasks; i++) {
        if (!job->tasks[i].facts.is_program || !job->tasks[i].runs.len)
            return false;
    }
    return job->ntasks > 0;
}

static bool proves_all_calls(const struct peal_file_task *task, const struct peal_verification *v)
{
    return task->all_calls || (task->facts.period && v->reuse >= PEAL_REUSE_REPEATABLE);
}

/* How many calls were examined. */
static uint64_t calls_proved(const struct peal_file_task *task, const struct peal_verification *v)
{
    return task->facts.period ? (uint64_t)v->launches * task->facts.period : task->facts.calls;
}

void peal_program_scope(const struct peal_file_task *task, const struct peal_verification *v,
                        struct peal_text *out)
{
    uint64_t calls = calls_proved(task, v);
    if (proves_all_calls(task, v))
        peal_text_puts(out, "for any number of calls");
    else if (!calls)
        peal_text_puts(out, "for what the program does, once");
    else
        peal_text_printf(out, "for %" PRIu64 " call%s", calls, peal_text_plural((long long)calls));
}

/* "proved for 3 calls", "race", "not decided" */
static void put_verdict(const struct peal_file_task *task, struct peal_text *out)
{
    const struct peal_verification *v = task->runs.at[0].answer;
    if (!v) {
        peal_text_puts(out, "not recorded");
    } else if (v->verdict == PEAL_REFUTED) {
        peal_text_printf(out, "refuted: %s", peal_fault_name(v->fault));
    } else {
        peal_text_puts(out, peal_outcome_name(v->verdict));
        if (v->verdict == PEAL_PROVED) {
            peal_text_puts(out, " ");
            peal_program_scope(task, v, out);
        }
    }
}

static enum peal_tone tone_of(const struct peal_file_task *task)
{
    const struct peal_verification *v = task->runs.at[0].answer;
    return v ? peal_outcome_tone(v->verdict) : PEAL_TONE_UNSURE;
}

/* "run.py: proved for any number of calls at 2, 4, 8 ranks": one line for each answer. */
static void put_verdicts(const struct peal_files_job *job, struct peal_text *out)
{
    const char *previous = "";
    struct peal_text verdict[2] = {{0}, {0}};
    bool several = false; /* numbers in the line */
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        struct peal_text *now = &verdict[i % 2];
        now->len = 0;
        put_verdict(task, now);
        if (i && strcmp(previous, peal_text_get(now)) == 0) {
            peal_text_printf(out, ", %u", task->facts.nranks);
            several = true;
        } else {
            if (i)
                peal_text_printf(out, " rank%s\n",
                                 several ? "s" : peal_text_plural(job->tasks[i - 1].facts.nranks));
            several = false;
            peal_text_printf(out, "%s: ", task->path);
            peal_text_toned(out, tone_of(task), peal_text_get(now));
            peal_text_printf(out, " at %u", task->facts.nranks);
        }
        previous = peal_text_get(now);
    }
    peal_text_printf(out, " rank%s\n",
                     several ? "s" : peal_text_plural(job->tasks[job->ntasks - 1].facts.nranks));
    peal_text_release(&verdict[0]);
    peal_text_release(&verdict[1]);
}

/* A row for each number of ranks. */
static void put_table(const struct peal_files_job *job, struct peal_text *out)
{
    static const char *const titles[] = {"ranks", "ops", "verdict", "calls", "bits", "ms"};
    static const char *const bits[] = {"-", "same", "differ"};
    struct peal_report_table *table = peal_report_table_new();
    for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
        peal_report_table_column(table, titles[i], i < 2 ? PEAL_ALIGN_RIGHT : PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        const struct peal_verification *v = task->runs.at[0].answer;
        peal_report_table_cell(table, "%u", task->facts.nranks);
        peal_report_table_cell(table, "%" PRIu64, v ? v->ops : 0);
        if (v && v->verdict == PEAL_REFUTED)
            peal_report_table_cell(table, "%s", peal_fault_name(v->fault));
        else
            peal_report_table_cell(table, "%s", v ? peal_outcome_name(v->verdict) : "not decided");
        peal_report_table_tone(table, tone_of(task));
        if (!v || v->verdict != PEAL_PROVED)
            peal_report_table_cell(table, "-");
        else if (proves_all_calls(task, v))
            peal_report_table_cell(table, "any number");
        else if (calls_proved(task, v))
            peal_report_table_cell(table, "%" PRIu64, calls_proved(task, v));
        else
            peal_report_table_cell(table, "-");
        peal_report_table_cell(table, "%s", v ? bits[v->bits] : "-");
        peal_report_table_cell(table, "%.1f%s", v ? v->milliseconds : 0,
                               v && v->cached ? " cached" : "");
    }
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}

/* Was it said of a recording before this one? */
static bool is_known(const struct peal_files_job *job, size_t task, const char *message)
{
    for (size_t i = 0; i < task; i++) {
        const struct peal_findings *findings = &job->tasks[i].findings;
        for (size_t k = 0; k < findings->list.len; k++) {
            if (strcmp(findings->list.at[k].message, message) == 0)
                return true;
        }
    }
    return false;
}

/* What the verdict is about, and what it assumes. */
static void put_conditions(const struct peal_files_job *job, struct peal_text *out)
{
    const struct peal_file_task *first = &job->tasks[0];
    const struct peal_verification *v = first->runs.at[0].answer;
    size_t from = out->len;
    if (first->facts.contract == PEAL_CONTRACT_NONE) {
        peal_text_puts(out, "  races, deadlock and bounds only; the result is not judged "
                            "(--implements, peal.expect)\n");
    } else {
        peal_text_printf(out, "  result: %s", first->facts.collective);
        if (v && v->verdict == PEAL_PROVED && v->bits != PEAL_BITS_UNKNOWN)
            peal_text_printf(out, ", %s on all ranks",
                             v->bits == PEAL_BITS_SAME ? "the same bits" : "not the same bits");
        peal_text_puts(out, "\n");
    }
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_findings *findings = &job->tasks[i].findings;
        for (size_t k = 0; k < findings->list.len; k++) {
            const struct peal_finding *f = &findings->list.at[k];
            if (strcmp(f->rule, "recorded") != 0 || is_known(job, i, f->message))
                continue;
            const char *text = f->message;
            bool assumed = strncmp(text, "assumes ", 8) == 0;
            peal_text_printf(out, "  %s%s\n", assumed ? "assumed: " : "", text + 8 * assumed);
        }
    }
    peal_text_fold(out, from, 4, PEAL_TEXT_WIDTH);
}

/* --- counterexamples ------------------------------------------------------------------------- */

/* "rank 0 program 3 call 2" */
static void put_who(const void *context, uint32_t step, struct peal_text *out)
{
    const struct peal_file_run *run = context;
    const struct peal_step_place *place = run->steps ? &run->steps[step] : NULL;
    peal_text_printf(out, "rank %u", run->answer->steps[step].rank);
    if (place && place->lane && run->several_lanes)
        peal_text_printf(out, " %s", place->lane);
    if (place && place->call)
        peal_text_printf(out, " call %u", place->call);
}

static void put_accesses(const struct peal_file_run *run, struct peal_text *out)
{
    const struct peal_verification *v = run->answer;
    for (uint32_t i = 0; i < v->naccesses; i++) {
        const struct peal_verify_access *a = &v->accesses_at[i];
        const struct peal_verify_step *s = &v->steps[a->step];
        put_who(run, a->step, out);
        peal_text_printf(out,
                         " %s '%s' of rank %u, elements %" PRIu64 " to %" PRIu64 " (bytes %" PRIu64
                         " to %" PRIu64 "), at %s:%u\n",
                         a->writes ? "writes" : "reads", a->buf, a->rank, a->first_element,
                         a->first_element + a->elements - 1, a->first_byte,
                         a->first_byte + a->bytes - 1, s->place.file, s->place.line);
    }
}

/* Those of the cycle first; a few of the others. */
static void put_waits(const struct peal_file_run *run, struct peal_text *out)
{
    enum { SHOWN = 8 };
    const struct peal_verification *v = run->answer;
    uint32_t shown = 0;
    for (int cycle = 1; cycle >= 0; cycle--) {
        for (uint32_t i = 0; i < v->nwaits; i++) {
            const struct peal_verify_wait *w = &v->waits[i];
            if (w->in_cycle != (cycle == 1) || w->step >= v->nsteps || shown++ >= SHOWN)
                continue;
            const struct peal_verify_step *s = &v->steps[w->step];
            put_who(run, w->step, out);
            peal_text_printf(out, " waits at %s:%u for %s %s %s; it is %s", s->place.file,
                             s->place.line, w->cell, w->relation,
                             peal_verify_cell_words(w->expected).text,
                             peal_verify_cell_words(w->actual).text);
            peal_text_puts(out, w->nnotifiers ? ", and only a rank that waits too could change it\n"
                                              : ", and no rank is left to change it\n");
        }
    }
    if (shown > SHOWN)
        peal_text_printf(out, "%u more programs or threads wait\n", shown - SHOWN);
}

static void put_source_of(struct story_files *files, const char *what,
                          const struct peal_verify_step *s, struct peal_text *out)
{
    peal_text_printf(out, "  %s by rank %u, %s:%u: ", what, s->rank, s->place.file, s->place.line);
    peal_story_source(files, s->place.file, s->place.line, 56, out);
    peal_text_puts(out, "\n");
}

static void put_wrong(struct story_files *files, const struct peal_verify_wrong *w,
                      struct peal_text *out)
{
    if (!w->buf)
        return;
    peal_text_printf(
        out, "rank %u: '%s', elements %" PRIu64 " to %" PRIu64 "\n  expected  %s\n  obtained  ",
        w->rank, w->buf, w->first_element, w->first_element + w->elements - 1, w->expected);
    peal_text_toned(out, PEAL_TONE_BAD, w->obtained);
    peal_text_puts(out, "\n");
    if (w->difference)
        peal_text_printf(out, "  %s\n", w->difference);
    if (w->has_lost)
        put_source_of(files, "lost when it was overwritten", &w->lost, out);
    if (w->has_writer)
        put_source_of(files, "last written", &w->writer, out);
    else
        peal_text_puts(out, "  no kernel writes it\n");
}

static void put_counterexample(const struct peal_file_task *task, struct peal_text *out)
{
    const struct peal_file_run *run = &task->runs.at[0];
    const struct peal_verification *v = run->answer;
    struct story_files files = {0};
    struct story_view view = {.who = put_who, .context = run};
    size_t from = out->len;
    put_accesses(run, out);
    put_waits(run, out);
    put_wrong(&files, &v->wrong, out);
    peal_story_put(&view, &files, v, out);
    peal_text_fold(out, from, 4, PEAL_TEXT_WIDTH);
    peal_story_release(&files);
}

const struct peal_file_task *peal_program_worst(const struct peal_files_job *job)
{
    const struct peal_file_task *worst = NULL;
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        const struct peal_verification *v = task->runs.at[0].answer;
        if (v && v->verdict == PEAL_REFUTED)
            return task;
        if (!worst && (!v || v->verdict != PEAL_PROVED))
            worst = task;
    }
    return worst;
}

void peal_program_report(const struct peal_files_job *job, struct peal_text *out)
{
    const struct peal_file_task *worst = peal_program_worst(job);
    put_verdicts(job, out);
    put_table(job, out);
    put_conditions(job, out);
    if (worst) {
        size_t from = out->len;
        peal_text_puts(out, "\n");
        peal_files_put_problem(job, worst, &worst->runs.at[0], out);
        peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
        if (worst->runs.at[0].answer)
            put_counterexample(worst, out);
        from = out->len;
        for (size_t i = 0; i < worst->findings.list.len; i++) {
            const struct peal_finding *f = &worst->findings.list.at[i];
            if (strcmp(f->rule, PEAL_PROGRAM_FIX) == 0)
                peal_text_printf(out, "%s\n", f->message);
        }
        peal_text_fold(out, from, 4, PEAL_TEXT_WIDTH);
    }
    peal_text_puts(out, "\n");
}
