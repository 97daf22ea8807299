/* SPDX-License-Identifier: Apache-2.0 */
/* Fixes of files, each verified on the edited text before it is offered; shown as a patch and, with
 * --fix, written in place of the file, which is kept as a backup.
 *
 * Two sources of fixes. Findings of the reader may carry edits: each is tried alone, and loses its
 * edits if the file gets worse. For a race, a misused channel or a deadlock, the importer proposes
 * edits at the places of the counterexample. Generated plans often lack the same op on every rank,
 * so proposals are tried in rounds: an attempt that proves the file ends the search; otherwise the
 * first attempt whose fault is the same but elsewhere is where the next round begins.
 *
 * An attempt owns its text, and everything read from it points into it. Its edits have offsets in
 * the original file, whatever text they were proposed for: in_file converts. An edit of text that
 * replaced other text is refused, and edits never add or remove lines, so lines correspond. The
 * budget limits the number of attempts of a file, because each one verifies the whole file.
 */
#include "cli/import/files.h"
#include "cli/patch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum worth { WORSE, SAME, PROVED };
enum { MAX_SITES = 8 };

struct sites {
    struct peal_fix_site at[MAX_SITES];
    uint32_t count;
};

static void add_site(struct sites *sites, struct peal_fix_site site)
{
    if (sites->count < MAX_SITES)
        sites->at[sites->count++] = site;
}

/* The two places that race, or that use one end of a channel; the caller of a collective has no
 * place. */
static void find_collision(const struct peal_verification *v, struct sites *out)
{
    struct peal_fix_site site = {.channel = v->fault == PEAL_FAULT_CHANNEL};
    uint32_t n = 0;
    for (uint32_t s = 0; s < v->nsteps; s++) {
        if (v->steps[s].collides && !v->steps[s].place.line) {
            site.has_caller = true;
            site.caller = v->steps[s].rank;
        }
        if (!v->steps[s].collides || !v->steps[s].place.line)
            continue;
        site.line[n] = v->steps[s].place.line;
        site.col[n] = v->steps[s].place.col;
        if (++n == 2)
            break;
    }
    if (n == 1) {
        site.line[1] = site.line[0];
        site.col[1] = site.col[0];
    }
    if (n > 0)
        add_site(out, site);
}

static void find_waits(const struct peal_verification *v, struct sites *out)
{
    for (uint32_t i = 0; i < v->nwaits; i++) {
        uint32_t s = v->waits[i].step;
        if (s >= v->nsteps || !v->steps[s].place.line)
            continue;
        struct peal_fix_site site = {.deadlock = true};
        site.line[0] = site.line[1] = v->steps[s].place.line;
        site.col[0] = site.col[1] = v->steps[s].place.col;
        add_site(out, site);
    }
}

/* The places of the first refutation that has some. */
static struct sites find_sites(const struct peal_file_task *task)
{
    struct sites out = {.count = 0};
    for (size_t i = 0; i < task->runs.len; i++) {
        const struct peal_verification *v = task->runs.at[i].answer;
        if (v && (v->fault == PEAL_FAULT_RACE || v->fault == PEAL_FAULT_CHANNEL))
            find_collision(v, &out);
        else if (v && v->fault == PEAL_FAULT_DEADLOCK)
            find_waits(v, &out);
        if (out.count)
            break;
    }
    return out;
}

/* --- attempts -------------------------------------------------------------------------------- */

/* A text on its way from the file's to a proved one: all edits so far, with offsets in the file. */
struct fix_attempt {
    char *text; /* owned; NULL: the file's */
    struct peal_source source;
    struct peal_finding edits;
    struct peal_file_task task; /* how the text is judged */
    struct peal_import *import;
    enum worth worth;
};

static void free_attempt(struct fix_attempt *a)
{
    if (!a)
        return;
    peal_import_close(a->import);
    peal_files_release_task(&a->task);
    free(a->text);
    free(a);
}

/* Is the text proved, or at least no worse than the file was? */
static enum worth compare(const struct peal_file_task *now, const struct peal_file_task *then)
{
    enum worth worth = PROVED;
    if (now->runs.len != then->runs.len)
        return WORSE;
    for (size_t i = 0; i < now->runs.len; i++) {
        const struct peal_verification *v = now->runs.at[i].answer, *w = then->runs.at[i].answer;
        if (v && v->verdict == PEAL_PROVED)
            continue;
        if (!v || !w || v->verdict != w->verdict || v->fault != w->fault)
            return WORSE;
        worth = SAME;
    }
    return worth;
}

/* Converts offsets in an edited text to offsets in the file. */
static uint64_t in_file(const struct peal_finding *edits, uint64_t offset)
{
    uint64_t shift = 0; /* wraps around if edits make the text shorter */
    for (uint32_t i = 0; i < edits->nedits; i++) {
        const struct peal_edit *earlier = &edits->edits[i];
        if (earlier->offset + shift < offset)
            shift += strlen(earlier->text) - earlier->len;
    }
    return offset - shift;
}

/* Would an edit of the edited text change what an earlier edit replaced? */
static bool overlaps(const struct peal_finding *edits, const struct peal_edit *edit)
{
    uint64_t shift = 0;
    for (uint32_t i = 0; i < edits->nedits; i++) {
        const struct peal_edit *earlier = &edits->edits[i];
        uint64_t from = earlier->offset + shift, to = from + strlen(earlier->text);
        if (earlier->len && edit->offset < to && edit->offset + edit->len > from)
            return true;
        shift += strlen(earlier->text) - earlier->len;
    }
    return false;
}

static int by_offset(const void *a, const void *b)
{
    const struct peal_edit *x = a, *y = b;
    if (x->offset < y->offset)
        return -1;
    return x->offset > y->offset;
}

/* Applies a proposal to `from`. The result must be freed, after what was read from it. NULL: out of
 * memory, too many edits, or an edit of edited text. */
static struct fix_attempt *make_attempt(const struct peal_files_job *job,
                                        struct peal_file_task *task, const struct fix_attempt *from,
                                        const struct peal_finding *proposal)
{
    size_t len;
    struct fix_attempt *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->task.path = task->path;
    peal_arena_init(&a->task.arena, 0);
    peal_findings_init(&a->task.findings);
    a->text = peal_edits_apply(&from->source, proposal->edits, proposal->nedits, &len);
    if (!a->text || from->edits.nedits + proposal->nedits > PEAL_FINDING_EDITS) {
        free_attempt(a);
        return NULL;
    }
    a->source = (struct peal_source){task->source.name, a->text, len};
    a->task.source = a->source;
    a->edits = from->edits;
    for (uint32_t i = 0; i < proposal->nedits; i++) {
        const struct peal_edit *e = &proposal->edits[i];
        if (overlaps(&from->edits, e)) {
            free_attempt(a);
            return NULL;
        }
        const char *text = peal_arena_copy(&task->arena, e->text, strlen(e->text));
        a->edits.edits[a->edits.nedits++] =
            (struct peal_edit){in_file(&from->edits, e->offset), e->len, peal_text_or_empty(text)};
    }
    qsort(a->edits.edits, a->edits.nedits, sizeof *a->edits.edits, by_offset);
    if (peal_import_open(&a->source, NULL, &a->import) == PEAL_OK) {
        peal_files_verify_ways(job, &a->task, a->import);
        a->worth = compare(&a->task, task);
    }
    return a;
}

/* Is the fault at another place than before, in positions of the file? */
static bool moved(const struct fix_attempt *from, const struct fix_attempt *to)
{
    struct sites then = find_sites(&from->task), now = find_sites(&to->task);
    if (now.count < then.count)
        return true;
    for (uint32_t i = 0; i < now.count; i++) {
        for (int k = 0; k < 2; k++) {
            uint64_t offset = peal_edits_offset(&to->source, now.at[i].line[k], now.at[i].col[k]);
            bool known = false;
            for (uint32_t j = 0; j < then.count; j++) {
                uint64_t old =
                    peal_edits_offset(&from->source, then.at[j].line[k], then.at[j].col[k]);
                known = known || in_file(&from->edits, old) == in_file(&to->edits, offset);
            }
            if (!known)
                return true;
        }
    }
    return false;
}

/* --- search ---------------------------------------------------------------------------------- */

/* The position of the first edit in the file; a proposal's own position is in the text that it was
 * made for. */
static struct peal_pos first_place(const struct peal_file_task *task,
                                   const struct peal_finding *edits)
{
    struct peal_pos pos = {NULL, 1, 1, 1};
    uint64_t offset = peal_size_min(edits->edits[0].offset, task->source.len);
    for (uint64_t i = 0; i < offset; i++) {
        pos.col++;
        if (task->source.text[i] == '\n') {
            pos.line++;
            pos.col = 1;
        }
    }
    return pos;
}

static void record(struct peal_file_task *task, const struct peal_finding *like,
                   const struct peal_finding *edits, uint32_t rounds)
{
    char more[64] = "";
    struct peal_pos pos = {NULL, like->pos.line, like->pos.col, like->pos.len};
    if (rounds > 1) {
        snprintf(more, sizeof more, ", and the like at %u more places", rounds - 1);
        pos = first_place(task, edits);
    }
    struct peal_finding *f = peal_finding_add(&task->findings, PEAL_FINDING_NOTE, like->rule, pos,
                                              "%s%s (verified)", like->message, more);
    for (uint32_t k = 0; k < edits->nedits; k++)
        peal_finding_edit(&task->findings, f, edits->edits[k].offset, edits->edits[k].len,
                          edits->edits[k].text);
}

/* One round: tries every proposal for every place, until one proves the file. Otherwise it
 * continues with the first after which something else is wrong, because generated plans lack the
 * same op on every rank; or, if there is none, with the first that waits for a signal which no wait
 * takes, because the same places may collide in other launches until all such signals are taken.
 * The result replaces *at. False: there is none. */
static bool try_round(const struct peal_files_job *job, struct peal_file_task *task,
                      struct fix_attempt **at, uint32_t round, uint32_t *budget)
{
    struct fix_attempt *next = NULL, *same_place = NULL;
    struct peal_findings proposals;
    struct sites sites = find_sites(&(*at)->task);
    bool proved = false;
    peal_findings_init(&proposals);
    for (uint32_t i = 0; i < sites.count; i++)
        peal_import_propose((*at)->import, &sites.at[i], &proposals);
    for (size_t i = 0; i < proposals.list.len; i++) {
        if (!*budget)
            break;
        (*budget)--;
        struct fix_attempt *now = make_attempt(job, task, *at, &proposals.list.at[i]);
        proved = now && now->worth == PROVED;
        if (proved)
            record(task, &proposals.list.at[i], &now->edits, round + 1);
        bool same = now && now->worth == SAME && !next;
        if (same && moved(*at, now))
            next = now;
        else if (same && !same_place && strcmp(proposals.list.at[i].rule, "fix-wait") == 0)
            same_place = now;
        else
            free_attempt(now);
        if (proved)
            break;
    }
    peal_findings_release(&proposals);
    free_attempt(*at);
    if (next)
        free_attempt(same_place);
    else
        next = same_place;
    *at = next;
    return next && !proved;
}

static void search_fix(const struct peal_files_job *job, struct peal_file_task *task)
{
    enum { MANY_STEPS = 20000, BUDGET = 400, SMALL_BUDGET = 16 };
    uint32_t budget = task->facts.steps > MANY_STEPS ? SMALL_BUDGET : BUDGET, round = 0;
    struct peal_finding nothing = {0};
    struct fix_attempt file = {.source = task->source};
    struct fix_attempt *at = make_attempt(job, task, &file, &nothing);
    while (at && at->import && budget && try_round(job, task, &at, round++, &budget)) {
    }
    free_attempt(at);
}

void peal_files_find_fixes(const struct peal_files_job *job, struct peal_file_task *task)
{
    struct fix_attempt file = {.source = task->source};
    for (size_t i = 0; i < task->findings.list.len; i++) {
        if (!task->findings.list.at[i].nedits)
            continue;
        struct fix_attempt *now = make_attempt(job, task, &file, &task->findings.list.at[i]);
        if (!now || now->worth == WORSE)
            task->findings.list.at[i].nedits = 0;
        free_attempt(now);
    }
    struct sites sites = find_sites(task);
    bool inserts = task->facts.format == PEAL_FORMAT_MSCCLPP;
    if (sites.count && (inserts || !sites.at[0].deadlock)) /* nothing helps a deadlock of FIFOs */
        search_fix(job, task);
}

/* --- patches --------------------------------------------------------------------------------- */

/* All edits of all fixes as one text, to be freed. NULL: there are none, or out of memory. */
static char *fixed_text(const struct peal_file_task *task, size_t *len)
{
    struct peal_source at = task->source;
    char *text = NULL;
    for (size_t i = task->findings.list.len; i-- > 0;) {
        const struct peal_finding *f = &task->findings.list.at[i];
        if (!f->nedits)
            continue;
        /* Offsets are those of the original. If several findings insert attributes at one place,
         * these keep their order because the last finding is applied first. */
        struct peal_edit shifted[PEAL_FINDING_EDITS];
        for (uint32_t k = 0; k < f->nedits; k++) {
            shifted[k] = f->edits[k];
            for (size_t j = i + 1; j < task->findings.list.len; j++) {
                const struct peal_finding *g = &task->findings.list.at[j];
                for (uint32_t e = 0; e < g->nedits; e++) {
                    if (g->edits[e].offset < f->edits[k].offset)
                        shifted[k].offset += strlen(g->edits[e].text) - g->edits[e].len;
                }
            }
        }
        char *next = peal_edits_apply(&at, shifted, f->nedits, len);
        free(text);
        if (!next)
            return NULL;
        text = next;
        at = (struct peal_source){task->path, text, *len};
    }
    return text;
}

/* What the file is with all fixes: "" if it is proved, otherwise "; it stays refuted: race". */
static void judge_text(const struct peal_files_job *job, const struct peal_file_task *task,
                       const char *text, size_t len, struct peal_text *out)
{
    struct peal_file_task fixed = {.path = task->path};
    struct peal_import *import = NULL;
    fixed.source = (struct peal_source){task->source.name, text, len};
    peal_arena_init(&fixed.arena, 0);
    peal_findings_init(&fixed.findings);
    if (peal_import_open(&fixed.source, NULL, &import) == PEAL_OK)
        peal_files_verify_ways(job, &fixed, import);
    for (size_t i = 0; i < fixed.runs.len; i++) {
        const struct peal_verification *v = fixed.runs.at[i].answer;
        if (!v || v->verdict == PEAL_PROVED || out->len)
            continue;
        if (v->verdict == PEAL_REFUTED)
            peal_text_printf(out, "; it stays refuted: %s", peal_fault_name(v->fault));
        else
            peal_text_printf(out, "; it is %s", peal_outcome_name(v->verdict));
    }
    peal_import_close(import);
    peal_files_release_task(&fixed);
}

void peal_files_use_fixes(const struct peal_files_job *job, struct peal_file_task *task)
{
    size_t len;
    struct peal_text said = {0};
    char *text = fixed_text(task, &len);
    if (!text)
        return;
    struct peal_source fixed = {task->path, text, len};
    peal_patch_print(task->path, &task->source, &fixed, &said);
    if (job->fix) {
        struct peal_text still = {0};
        judge_text(job, task, text, len, &still);
        task->fixed =
            peal_patch_replace(task->path, text, len, still.len ? "changed" : "fixed", &said);
        peal_text_printf(&said, "%s\n", task->fixed ? peal_text_get(&still) : "");
        peal_text_release(&still);
    }
    task->patch = peal_arena_copy(&task->arena, peal_text_get(&said), said.len);
    peal_text_release(&said);
    free(text);
}
