/* SPDX-License-Identifier: Apache-2.0 */
/* peal verify --sarif: SARIF 2.1.0, for code reviews and CI. A result for every way to launch a
 * file that is not proved and for every finding; fixes as replacements; a counterexample as a code
 * flow.
 */
#include "cli/import/files.h"

#include "report/report.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *id, *text;
} rules[] = {
    {"peal-refuted", "the plan is wrong: a schedule, an access or a result shows it"},
    {"peal-undecided", "the plan could not be decided"},
    {"peal-unreadable", "the file cannot be read as a plan"},
    {"peal-required", "a property that is required does not hold"},
    {"peal-finding", "what the engine will do with the file"},
};
enum { RULE_REFUTED, RULE_UNDECIDED, RULE_UNREADABLE, RULE_REQUIRED, RULE_FINDING, RULES };

/* A path as a relative reference, with special characters escaped. */
static void put_uri(struct peal_json *json, const char *path)
{
    struct peal_text uri = {0};
    for (const unsigned char *c = (const unsigned char *)path; *c; c++) {
        if (isalnum(*c) || strchr("/._-~", *c))
            peal_text_printf(&uri, "%c", *c);
        else
            peal_text_printf(&uri, "%%%02X", *c);
    }
    peal_json_put_string(json, "uri", peal_text_get(&uri));
    peal_text_release(&uri);
}

static void put_text(struct peal_json *json, const char *key, const char *text)
{
    peal_json_put_object(json, key);
    peal_json_put_string(json, "text", text);
    peal_json_object_end(json);
}

/* A location object; line 0: the file as a whole. */
static void put_location(struct peal_json *json, const char *path, uint32_t line, uint32_t col,
                         const char *message)
{
    peal_json_object(json);
    peal_json_put_object(json, "physicalLocation");
    peal_json_put_object(json, "artifactLocation");
    put_uri(json, path);
    peal_json_object_end(json);
    if (line) {
        peal_json_put_object(json, "region");
        peal_json_put_uint(json, "startLine", line);
        if (col) {
            peal_json_put_uint(json, "startColumn", col);
        }
        peal_json_object_end(json);
    }
    peal_json_object_end(json);
    if (message)
        put_text(json, "message", message);
    peal_json_object_end(json);
}

struct sarif_result {
    int rule;
    const char *level, *message, *path;
    uint32_t line, col;
};

/* Opens a result object; the caller adds to it and ends it. */
static void begin_result(struct peal_json *json, const struct sarif_result *r)
{
    peal_json_object(json);
    peal_json_put_string(json, "ruleId", rules[r->rule].id);
    peal_json_put_uint(json, "ruleIndex", (uint64_t)r->rule);
    peal_json_put_string(json, "level", r->level);
    put_text(json, "message", r->message);
    peal_json_put_array(json, "locations");
    put_location(json, r->path, r->line, r->col, NULL);
    peal_json_array_end(json);
}

static void put_flow(struct peal_json *json, const struct peal_verification *v, const char *path)
{
    if (!v->nsteps)
        return;
    peal_json_put_array(json, "codeFlows");
    peal_json_object(json);
    peal_json_put_array(json, "threadFlows");
    peal_json_object(json);
    peal_json_put_array(json, "locations");
    for (uint32_t i = 0; i < v->nsteps; i++) {
        const struct peal_verify_step *step = &v->steps[i];
        struct peal_text text = {0};
        peal_text_printf(&text, "rank %u lane %u launch %u: %s", step->rank, step->lane,
                         step->launch, peal_text_or_empty(step->text));
        peal_json_object(json);
        peal_json_key(json, "location");
        put_location(json, path, step->place.line, step->place.col, peal_text_get(&text));
        peal_json_object_end(json);
        peal_text_release(&text);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
}

static void put_run(struct peal_json *json, const struct peal_files_job *job,
                    const struct peal_file_task *task, const struct peal_file_run *run)
{
    const struct peal_verification *v = run->answer;
    struct peal_text text = {0};
    struct sarif_result r = {RULE_REFUTED, "error", NULL, task->path, 0, 0};
    const char *lacks = NULL;
    if (v)
        lacks = peal_require_lacks(job->require, v);
    if (v && v->verdict == PEAL_PROVED && !lacks)
        return;
    if (!v) {
        r.rule = RULE_UNREADABLE;
        peal_text_puts(&text, run->why);
    } else if (lacks) {
        r.rule = RULE_REQUIRED;
        peal_text_printf(&text, "required, but %s", lacks);
    } else {
        struct peal_verify_place at = peal_fault_place(run);
        bool refuted = v->verdict == PEAL_REFUTED;
        r.rule = RULE_UNDECIDED;
        if (refuted)
            r.rule = RULE_REFUTED;
        r.level = "warning";
        if (refuted)
            r.level = "error";
        r.line = at.line;
        r.col = at.col;
        peal_text_puts(&text, refuted ? peal_fault_name(v->fault) : peal_outcome_name(v->verdict));
        if (run->pieces)
            peal_text_puts(&text, " in large calls, which send chunks one by one");
        if (v->why)
            peal_text_printf(&text, ": %s", v->why);
    }
    r.message = peal_text_get(&text);
    begin_result(json, &r);
    if (v)
        put_flow(json, v, task->path);
    peal_json_object_end(json);
    peal_text_release(&text);
}

static void put_fix(struct peal_json *json, const struct peal_file_task *task,
                    const struct peal_finding *f)
{
    peal_json_put_array(json, "fixes");
    peal_json_object(json);
    put_text(json, "description", f->message);
    peal_json_put_array(json, "artifactChanges");
    peal_json_object(json);
    peal_json_put_object(json, "artifactLocation");
    put_uri(json, task->path);
    peal_json_object_end(json);
    peal_json_put_array(json, "replacements");
    for (uint32_t i = 0; i < f->nedits; i++) {
        peal_json_object(json);
        peal_json_put_object(json, "deletedRegion");
        peal_json_put_uint(json, "byteOffset", f->edits[i].offset);
        peal_json_put_uint(json, "byteLength", f->edits[i].len);
        peal_json_object_end(json);
        put_text(json, "insertedContent", f->edits[i].text);
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
        struct sarif_result r = {RULE_UNREADABLE,
                                 "error",
                                 task->unreadable ? task->unreadable : "another number of ranks",
                                 task->path,
                                 task->fault_line,
                                 task->fault_col};
        begin_result(json, &r);
        peal_json_object_end(json);
    }
    for (size_t i = 0; i < task->runs.len; i++)
        put_run(json, job, task, &task->runs.at[i]);
    for (size_t i = 0; i < task->findings.list.len; i++) {
        const struct peal_finding *f = &task->findings.list.at[i];
        struct peal_text text = {0};
        peal_text_printf(&text, "%s [%s]", f->message, f->rule);
        struct sarif_result r = {RULE_FINDING,         peal_finding_level_name(f->level),
                                 peal_text_get(&text), task->path,
                                 f->pos.line,          f->pos.col};
        begin_result(json, &r);
        if (f->nedits)
            put_fix(json, task, f);
        peal_json_object_end(json);
        peal_text_release(&text);
    }
}

static void put_driver(struct peal_json *json)
{
    peal_json_put_object(json, "tool");
    peal_json_put_object(json, "driver");
    peal_json_put_string(json, "name", "peal");
    peal_json_key(json, "version");
    struct peal_text version = {0};
    peal_text_printf(&version, "%d.%d.%d", PEAL_VERSION_MAJOR, PEAL_VERSION_MINOR,
                     PEAL_VERSION_PATCH);
    peal_json_string(json, peal_text_get(&version));
    peal_text_release(&version);
    peal_json_put_array(json, "rules");
    for (int i = 0; i < RULES; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "id", rules[i].id);
        put_text(json, "shortDescription", rules[i].text);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

void peal_files_report_sarif(const struct peal_files_job *job, struct peal_text *out)
{
    struct peal_json json;
    peal_json_init(&json, out, 1);
    peal_json_object(&json);
    peal_json_put_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    peal_json_put_string(&json, "version", "2.1.0");
    peal_json_put_array(&json, "runs");
    peal_json_object(&json);
    put_driver(&json);
    peal_json_put_array(&json, "results");
    for (size_t i = 0; i < job->ntasks; i++)
        put_task(&json, job, &job->tasks[i]);
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_json_array_end(&json);
    peal_json_object_end(&json);
    peal_text_puts(out, "\n");
}
