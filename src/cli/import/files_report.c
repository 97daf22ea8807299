/* SPDX-License-Identifier: Apache-2.0 */
/* What peal verify prints about files: a table, then a line for each that is not proved, in the
 * form of compilers and editors (file:line:col: error: ...), then the counterexample if there is
 * one file, then what the engine will do, then one line of totals. */
#include "cli/import/files.h"

#include "cli/import/files_program.h"

#include "cli/verify/sarif.h"

#include "report/report.h"

#include <inttypes.h>
#include <string.h>

static bool has_finished(const struct peal_file_task *t)
{
    /* acquire: partner is the release of the worker; after Ctrl-C some are still running */
    return atomic_load_explicit(&t->finished, memory_order_acquire);
}

static const char *verdict_name(const struct peal_verification *v)
{
    if (v->verdict == PEAL_REFUTED)
        return peal_fault_name(v->fault);
    return peal_outcome_name(v->verdict);
}

/* `one`: there is one file, and no column for its path, which would take most of a line. */
static void put_row(const struct peal_file_task *t, const struct peal_file_run *run, bool one,
                    struct peal_report_table *table)
{
    static const char *const bits[] = {"-", "same", "differ"};
    const struct peal_verification *v = NULL;
    if (run)
        v = run->answer;
    if (!one)
        peal_report_table_cell(table, "%s", t->path);
    if (t->facts.nranks)
        peal_report_table_cell(table, "%u", t->facts.nranks);
    else
        peal_report_table_cell(table, "-");
    const char *place = "-";
    if (run)
        place = run->in_place ? "in" : "out of";
    peal_report_table_cell(table, "%s", place);
    if (run)
        peal_report_table_cell(table, "%" PRIu64, run->count);
    else
        peal_report_table_cell(table, "-");
    if (!v) {
        const char *verdict = run ? "no plan" : "unreadable";
        peal_report_table_cell(table, "%s", run && run->refused ? "not decided" : verdict);
        peal_report_table_tone(table, PEAL_TONE_UNSURE);
        for (int i = 0; i < 5; i++)
            peal_report_table_cell(table, "-");
        return;
    }
    peal_report_table_cell(table, "%s", verdict_name(v));
    peal_report_table_tone(table, peal_outcome_tone(v->verdict));
    peal_report_table_cell(table, "%s", peal_reuse_name(v->reuse));
    peal_report_table_cell(table, "%s", bits[v->bits]);
    uint32_t least = v->verdict == PEAL_PROVED ? v->least_depth : run->least_depth;
    if (least)
        peal_report_table_cell(table, "%u", least);
    else
        peal_report_table_cell(table, "-");
    peal_report_table_cell(table, "%" PRIu64, v->ops);
    peal_report_table_cell(table, "%.1f%s", v->milliseconds, v->cached ? " cached" : "");
}

void peal_files_report_table(const struct peal_files_job *job, struct peal_text *out)
{
    struct peal_report_table *table = peal_report_table_new();
    static const char *const titles[] = {"file",  "ranks", "place", "count", "verdict",
                                         "reuse", "bits",  "depth", "ops",   "ms"};
    bool one = job->ntasks == 1;
    for (int i = one; i < 10; i++)
        peal_report_table_column(table, titles[i],
                                 i == 1 || i == 3 || i == 7 || i == 8 ? PEAL_ALIGN_RIGHT
                                                                      : PEAL_ALIGN_LEFT);
    for (size_t i = 0; i < job->ntasks; i++) {
        const struct peal_file_task *t = &job->tasks[i];
        if (!has_finished(t))
            continue;
        for (size_t k = 0; k < t->runs.len; k++)
            put_row(t, &t->runs.at[k], one, table);
        if (!t->runs.len)
            put_row(t, NULL, one, table);
    }
    peal_report_table_text(table, out);
    peal_report_table_free(table);
}

struct peal_verify_place peal_fault_place(const struct peal_file_task *task,
                                          const struct peal_file_run *run)
{
    struct peal_verify_place at = peal_sarif_place(run->answer);
    if (!at.line)
        at = (struct peal_verify_place){.line = run->gpu_line, .col = run->gpu_col};
    if (task->facts.varies && run->answer->why == task->facts.varies && task->facts.varies_file[0])
        at = (struct peal_verify_place){
            .file = task->facts.varies_file, .line = task->facts.varies_line, .col = 1};
    /* Only a recording speaks of other files than its own. */
    if (task->facts.format != PEAL_FORMAT_RECORDING || !at.line || !at.file)
        at.file = task->path;
    return at;
}

static void put_place(const char *path, uint32_t line, uint32_t col, struct peal_text *out)
{
    peal_text_printf(out, "%s:", path);
    if (line)
        peal_text_printf(out, "%u:%u:", line, col);
    peal_text_puts(out, " ");
}

void peal_files_put_problem(const struct peal_files_job *job, const struct peal_file_task *t,
                            const struct peal_file_run *run, struct peal_text *out)
{
    const struct peal_verification *v = run->answer;
    if (!v) {
        peal_text_puts(out, run->why);
        return;
    }
    const char *lacks = peal_require_lacks(job->require, v);
    if (v->verdict == PEAL_PROVED && !lacks)
        return;
    struct peal_verify_place at = peal_fault_place(t, run);
    put_place(at.file, at.line, at.col, out);
    if (lacks) {
        peal_text_printf(out, "error: required, but %s", lacks);
        if (v->bits_why)
            peal_text_printf(out, ": %s", v->bits_why);
        peal_text_puts(out, "\n");
        return;
    }
    bool refuted = v->verdict == PEAL_REFUTED;
    peal_text_printf(out, "%s: %s", refuted ? "error" : "warning", verdict_name(v));
    if (run->in_place)
        peal_text_puts(out, " in place");
    if (run->pieces)
        peal_text_puts(out, " in large calls, which send chunks one by one");
    if (v->why)
        peal_text_printf(out, ": %s", v->why);
    if (v->fault == PEAL_FAULT_DEADLOCK && run->never)
        peal_text_puts(out, " (no FIFO depth helps)");
    peal_text_puts(out, "\n");
}

static void put_findings(const struct peal_file_task *t, enum peal_finding_level least,
                         struct peal_text *out)
{
    for (size_t i = 0; i < t->findings.list.len; i++) {
        const struct peal_finding *f = &t->findings.list.at[i];
        if (f->level < least)
            continue;
        size_t from = out->len;
        put_place(t->path, f->pos.line, f->pos.col, out);
        peal_text_printf(out, "%s: %s [%s]\n", peal_finding_level_name(f->level), f->message,
                         f->rule);
        peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
    }
}

/* The first refuted way is shown in full, otherwise the first undecided one. */
static void put_counterexample(const struct peal_file_task *t, struct peal_text *out)
{
    const struct peal_verification *told = NULL;
    for (size_t i = 0; i < t->runs.len; i++) {
        const struct peal_verification *v = t->runs.at[i].answer;
        if (v && v->verdict != PEAL_PROVED && (!told || told->verdict == PEAL_UNDECIDED))
            told = told && v->verdict == PEAL_UNDECIDED ? told : v;
    }
    if (told) {
        peal_text_puts(out, "\n");
        peal_verification_explain(told, out);
    }
}

void peal_files_report_text(const struct peal_files_job *job, const struct peal_files_tally *t,
                            struct peal_text *out)
{
    bool one = job->ntasks == 1, programs = peal_program_is(job);
    if (programs)
        peal_program_report(job, out);
    else
        peal_files_report_table(job, out);
    size_t start = out->len;
    if (!programs)
        peal_text_puts(out, "\n");
    for (size_t i = 0; i < job->ntasks && !programs; i++) {
        const struct peal_file_task *task = &job->tasks[i];
        if (task->unreadable)
            peal_text_puts(out, task->unreadable);
        if (task->wrong_ranks)
            peal_text_printf(out, "%s: is for %u ranks; --ranks cannot change that\n", task->path,
                             task->facts.nranks);
        size_t from = out->len;
        for (size_t k = 0; k < task->runs.len; k++)
            peal_files_put_problem(job, task, &task->runs.at[k], out);
        peal_text_fold(out, from, 2, PEAL_TEXT_WIDTH);
        put_findings(task, one ? PEAL_FINDING_NOTE : PEAL_FINDING_WARNING, out);
        if (task->patch)
            peal_text_printf(out, "\n%s\n", task->patch);
    }
    if (one && !programs)
        put_counterexample(&job->tasks[0], out);
    if (!programs && out->len > start + 1)
        peal_text_puts(out, "\n");
    peal_text_printf(out,
                     "%zu file%s: %" PRIu64 " proved, %" PRIu64 " refuted, %" PRIu64
                     " not decided, %" PRIu64 " unreadable",
                     job->ntasks, one ? "" : "s", t->proved, t->refuted, t->undecided,
                     t->unreadable);
    if (t->lacking)
        peal_text_printf(out, "; %" PRIu64 " without what is required", t->lacking);
    peal_text_printf(out, ". %" PRIu64 " ops in %.0f ms.\n", t->ops, t->ms);
}

/* --- JSON ------------------------------------------------------------------------------------ */

static void json_findings(const struct peal_file_task *task, struct peal_json *json)
{
    peal_json_put_array(json, "findings");
    for (size_t i = 0; i < task->findings.list.len; i++) {
        const struct peal_finding *f = &task->findings.list.at[i];
        peal_json_object(json);
        peal_json_put_string(json, "level", peal_finding_level_name(f->level));
        peal_json_put_string(json, "rule", f->rule);
        peal_json_put_uint(json, "line", f->pos.line);
        peal_json_put_uint(json, "col", f->pos.col);
        peal_json_put_string(json, "message", f->message);
        peal_json_put_bool(json, "fixable", f->nedits > 0);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
}

static void json_run(const struct peal_files_job *job, const struct peal_file_task *task,
                     const struct peal_file_run *run, struct peal_json *json)
{
    peal_json_object(json);
    peal_json_put_string(json, "place", run->in_place ? "in" : "out");
    peal_json_put_uint(json, "count", run->count);
    if (run->pieces)
        peal_json_put_bool(json, "pieces", true);
    if (run->answer) {
        const char *lacks = peal_require_lacks(job->require, run->answer);
        if (run->answer->fault == PEAL_FAULT_DEADLOCK)
            peal_json_put_uint(json, "depth_needed", run->least_depth);
        if (lacks)
            peal_json_put_string(json, "lacks", lacks);
        if (task->facts.is_program && run->answer->verdict == PEAL_PROVED) {
            struct peal_text scope = {0};
            peal_program_scope(task, run->answer, &scope);
            peal_json_put_string(json, "proved", peal_text_get(&scope));
            peal_text_release(&scope);
        }
        if (run->steps) {
            peal_json_put_array(json, "steps_of");
            for (uint32_t i = 0; i < run->answer->nsteps; i++) {
                peal_json_object(json);
                peal_json_put_uint(json, "call", run->steps[i].call);
                peal_json_put_string(json, "lane", peal_text_or_empty(run->steps[i].lane));
                peal_json_object_end(json);
            }
            peal_json_array_end(json);
        }
        peal_json_key(json, "answer");
        peal_verification_put(run->answer, json);
    } else {
        peal_json_put_string(json, "no_plan", run->why);
    }
    peal_json_object_end(json);
}

static void json_file(const struct peal_files_job *job, const struct peal_file_task *task,
                      struct peal_json *json)
{
    const struct peal_import_facts *f = &task->facts;
    peal_json_break(json, 0);
    peal_json_object(json);
    peal_json_put_string(json, "file", task->path);
    if (task->unreadable) {
        peal_json_put_string(json, "unreadable", task->unreadable);
        peal_json_object_end(json);
        return;
    }
    peal_json_put_string(json, "format", peal_format_name(f->format));
    peal_json_put_string(json, "name", f->name);
    peal_json_put_string(json, "collective", f->collective);
    peal_json_put_string(json, "protocol", f->protocol);
    peal_json_put_uint(json, "ranks", f->nranks);
    peal_json_put_uint(json, "steps", f->steps);
    peal_json_put_uint(json, "depth", f->depth);
    if (f->is_program) {
        peal_json_put_uint(json, "calls", f->calls);
        peal_json_put_uint(json, "calls_per_launch", f->period);
    }
    peal_json_put_array(json, "runs");
    for (size_t k = 0; k < task->runs.len; k++)
        json_run(job, task, &task->runs.at[k], json);
    peal_json_array_end(json);
    json_findings(task, json);
    peal_json_object_end(json);
}

void peal_files_report_json(const struct peal_files_job *job, const struct peal_files_tally *t,
                            struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, PEAL_JSON_ONE_LINE);
    peal_json_object(&json);
    peal_json_put_uint(&json, "proved", t->proved);
    peal_json_put_uint(&json, "refuted", t->refuted);
    peal_json_put_uint(&json, "undecided", t->undecided);
    peal_json_put_uint(&json, "unreadable", t->unreadable);
    peal_json_put_uint(&json, "lacking", t->lacking);
    peal_json_put_array(&json, "files");
    for (size_t i = 0; i < job->ntasks; i++)
        json_file(job, &job->tasks[i], &json);
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}
