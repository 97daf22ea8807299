/* SPDX-License-Identifier: Apache-2.0 */
/* See sarif.h. */
#include "cli/verify/sarif.h"

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

/* A path as a relative reference, with special characters escaped. */
void peal_sarif_uri(struct peal_json *json, const char *path)
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

void peal_sarif_text(struct peal_json *json, const char *key, const char *text)
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
    peal_sarif_uri(json, path);
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
        peal_sarif_text(json, "message", message);
    peal_json_object_end(json);
}

/* Opens a result object; the caller adds to it and ends it. */
void peal_sarif_result(struct peal_json *json, const struct peal_sarif_result *r)
{
    peal_json_object(json);
    peal_json_put_string(json, "ruleId", rules[r->rule].id);
    peal_json_put_uint(json, "ruleIndex", (uint64_t)r->rule);
    peal_json_put_string(json, "level", r->level);
    peal_sarif_text(json, "message", r->message);
    peal_json_put_array(json, "locations");
    put_location(json, r->path, r->line, r->col, NULL);
    peal_json_array_end(json);
}

void peal_sarif_flow(struct peal_json *json, const struct peal_verification *v, const char *path,
                     bool of_steps)
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
        const char *file = of_steps && step->place.line ? step->place.file : path;
        put_location(json, file, step->place.line, step->place.col, peal_text_get(&text));
        peal_json_object_end(json);
        peal_text_release(&text);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
}

struct peal_verify_place peal_sarif_place(const struct peal_verification *v)
{
    for (uint32_t i = v->naccesses; i-- > 0;) {
        uint32_t step = v->accesses_at[i].step;
        if (step < v->nsteps && v->steps[step].place.line)
            return v->steps[step].place;
    }
    for (uint32_t i = 0; i < v->nwaits; i++) {
        uint32_t step = v->waits[i].step;
        if (v->waits[i].in_cycle && step < v->nsteps && v->steps[step].place.line)
            return v->steps[step].place;
    }
    for (uint32_t i = v->nsteps; i-- > 0;) {
        if (v->steps[i].place.line && (v->steps[i].collides || v->steps[i].blocked || i == 0))
            return v->steps[i].place;
    }
    if (v->wrong.has_lost)
        return v->wrong.lost.place;
    if (v->wrong.has_writer)
        return v->wrong.writer.place;
    return (struct peal_verify_place){.file = ""};
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
    for (int i = 0; i < PEAL_SARIF_RULES; i++) {
        peal_json_object(json);
        peal_json_put_string(json, "id", rules[i].id);
        peal_sarif_text(json, "shortDescription", rules[i].text);
        peal_json_object_end(json);
    }
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

void peal_sarif_begin(struct peal_json *json, struct peal_text *out)
{
    peal_json_init(json, out, 1);
    peal_json_object(json);
    peal_json_put_string(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    peal_json_put_string(json, "version", "2.1.0");
    peal_json_put_array(json, "runs");
    peal_json_object(json);
    put_driver(json);
    peal_json_put_array(json, "results");
}

void peal_sarif_end(struct peal_json *json, struct peal_text *out)
{
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_text_puts(out, "\n");
}
