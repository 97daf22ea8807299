/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify --sarif: SARIF 2.1.0, for code reviews and CI. A result for every way to launch a
 * file that is not proved and for every finding; fixes as replacements; a counterexample as a code
 * flow.
 */
#include "cli/import/files.h"

#include "cli/verify/sarif.h"
#include "report/report.h"

#include <string.h>

static void put_run(struct peal_json *json, const struct peal_files_job *job,
                    const struct peal_file_task *task, const struct peal_file_run *run)
{
    const struct peal_verification *v = run->answer;
    struct peal_text text = {0};
    struct peal_sarif_result r = {PEAL_SARIF_REFUTED, "error", NULL, task->path, 0, 0};
    const char *lacks = NULL;
    if (v)
        lacks = peal_require_lacks(job->require, v);
    if (v && v->verdict == PEAL_PROVED && !lacks)
        return;
    if (!v) {
        r.rule = PEAL_SARIF_UNREADABLE;
        peal_text_puts(&text, run->why);
    } else if (lacks) {
        r.rule = PEAL_SARIF_REQUIRED;
        peal_text_printf(&text, "required, but %s", lacks);
    } else {
        struct peal_verify_place at = peal_fault_place(task, run);
        bool refuted = v->verdict == PEAL_REFUTED;
        r.rule = PEAL_SARIF_UNDECIDED;
        if (refuted)
            r.rule = PEAL_SARIF_REFUTED;
        r.level = "warning";
        if (refuted)
            r.level = "error";
        r.path = at.file;
        r.line = at.line;
        r.col = at.col;
        peal_text_puts(&text, refuted ? peal_fault_name(v->fault) : peal_outcome_name(v->verdict));
        if (run->pieces)
            peal_text_puts(&text, " in large calls, which send chunks one by one");
        if (v->why)
            peal_text_printf(&text, ": %s", v->why);
    }
    r.message = peal_text_get(&text);
    peal_sarif_result(json, &r);
    if (v)
        peal_sarif_flow(json, v, task->path, task->facts.format == PEAL_FORMAT_RECORDING);
    peal_json_object_end(json);
    peal_text_release(&text);
}

static void put_fix(struct peal_json *json, const struct peal_file_task *task,
                    const struct peal_finding *f)
{
    peal_json_put_array(json, "fixes");
    peal_json_object(json);
    peal_sarif_text(json, "description", f->message);
    peal_json_put_array(json, "artifactChanges");
    peal_json_object(json);
    peal_json_put_object(json, "artifactLocation");
    peal_sarif_uri(json, task->path);
    peal_json_object_end(json);
    peal_json_put_array(json, "replacements");
    for (uint32_t i = 0; i < f->nedits; i++) {
        peal_json_object(json);
        peal_json_put_object(json, "deletedRegion");
        peal_json_put_uint(json, "byteOffset", f->edits[i].offset);
        peal_json_put_uint(json, "byteLength", f->edits[i].len);
        peal_json_object_end(json);
        peal_sarif_text(json, "insertedContent", f->edits[i].text);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
}

static void put_task(struct peal_json *json, const struct peal_files_job *job,
                     const struct peal_file_task *task)
{
    if (task->unreadable || task->wrong_ranks) {
        struct peal_sarif_result r = {PEAL_SARIF_UNREADABLE,
                                      "error",
                                      task->unreadable ? task->unreadable
                                                       : "another number of ranks",
                                      task->path,
                                      task->fault_line,
                                      task->fault_col};
        peal_sarif_result(json, &r);
        peal_json_object_end(json);
    }
    for (size_t i = 0; i < task->runs.len; i++)
        put_run(json, job, task, &task->runs.at[i]);
    for (size_t i = 0; i < task->findings.list.len; i++) {
        const struct peal_finding *f = &task->findings.list.at[i];
        struct peal_text text = {0};
        peal_text_printf(&text, "%s [%s]", f->message, f->rule);
        struct peal_sarif_result r = {PEAL_SARIF_FINDING,   peal_finding_level_name(f->level),
                                      peal_text_get(&text), task->path,
                                      f->pos.line,          f->pos.col};
        peal_sarif_result(json, &r);
        if (f->nedits)
            put_fix(json, task, f);
        peal_json_object_end(json);
        peal_text_release(&text);
    }
}

void peal_files_report_sarif(const struct peal_files_job *job, struct peal_json *results)
{
    for (size_t i = 0; i < job->ntasks; i++)
        put_task(results, job, &job->tasks[i]);
}
