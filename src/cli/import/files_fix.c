/* SPDX-License-Identifier: Apache-2.0 */
/* Fixes of files: found while the text is there, each verified on the edited file before it is
 * offered; shown as a patch, and with --fix written in place of the file, which is kept as a
 * backup. */
#include "cli/import/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum worth { WORSE, SAME, PROVED };

/* The two places of the first refutation that has any; the caller of a collective has none. */
static bool find_site(const struct peal_file_task *task, struct peal_fix_site *out)
{
    for (size_t i = 0; i < task->runs.len; i++) {
        const struct peal_verification *v = task->runs.at[i].answer;
        uint32_t n = 0;
        if (!v || (v->fault != PEAL_FAULT_RACE && v->fault != PEAL_FAULT_CHANNEL))
            continue;
        *out = (struct peal_fix_site){.channel = v->fault == PEAL_FAULT_CHANNEL};
        for (uint32_t s = 0; s < v->nsteps && n < 2; s++) {
            if (!v->steps[s].collides || !v->steps[s].place.line)
                continue;
            out->line[n] = v->steps[s].place.line;
            out->col[n++] = v->steps[s].place.col;
        }
        out->line[1] = n == 1 ? out->line[0] : out->line[1];
        out->col[1] = n == 1 ? out->col[0] : out->col[1];
        if (n > 0)
            return true;
    }
    return false;
}

/* The edited file, verified in the same ways: is it proved now, or at least as it was? `next` may
 * be NULL; otherwise it gets the places of what is wrong now, line 0 if there are none. */
static enum worth try_edits(const struct peal_files_job *job, const struct peal_file_task *task,
                            const struct peal_finding *f, struct peal_fix_site *next)
{
    size_t len;
    char *text = peal_edits_apply(&task->source, f->edits, f->nedits, &len);
    struct peal_file_task trial = {.path = task->path};
    struct peal_import *import = NULL;
    enum worth worth = WORSE;
    if (!text)
        return WORSE;
    trial.source = (struct peal_source){task->source.name, text, len};
    peal_arena_init(&trial.arena, 0);
    peal_findings_init(&trial.findings);
    if (peal_import_open(&trial.source, NULL, &import) == PEAL_OK) {
        peal_files_verify_ways(job, &trial, import);
        worth = trial.runs.len == task->runs.len ? PROVED : WORSE;
        for (size_t i = 0; i < trial.runs.len && i < task->runs.len; i++) {
            const struct peal_verification *now = trial.runs.at[i].answer;
            const struct peal_verification *then = task->runs.at[i].answer;
            bool same = now && then && now->verdict == then->verdict && now->fault == then->fault;
            if (!now || now->verdict != PEAL_PROVED)
                worth = same && worth != WORSE ? SAME : WORSE;
        }
    }
    if (next && !find_site(&trial, next))
        *next = (struct peal_fix_site){0};
    peal_import_close(import);
    peal_files_release_task(&trial);
    free(text);
    return worth;
}

/* Generated plans lack the same nop on every rank: one after the other, until it is proved. */
static void find_chain(const struct peal_files_job *job, struct peal_file_task *task,
                       const struct peal_import *import, struct peal_fix_site site)
{
    struct peal_finding chain = {0};
    while (site.line[1] && !site.channel && chain.nedits < PEAL_FINDING_EDITS) {
        struct peal_findings proposals;
        struct peal_pos pos = {NULL, site.line[1], site.col[1], 1};
        peal_findings_init(&proposals);
        peal_import_propose(import, &site, &proposals);
        const struct peal_finding *p = proposals.list.len ? &proposals.list.at[0] : NULL;
        const char *text =
            p ? peal_arena_copy(&task->arena, p->edits[0].text, strlen(p->edits[0].text)) : NULL;
        if (text)
            chain.edits[chain.nedits++] = (struct peal_edit){p->edits[0].offset, 0, text};
        peal_findings_release(&proposals);
        if (!text)
            return;
        if (try_edits(job, task, &chain, &site) != PROVED)
            continue;
        struct peal_finding *f =
            peal_finding_add(&task->findings, PEAL_FINDING_NOTE, "fix-nop", pos,
                             "fix: %u nops, each before an op that races (verified)", chain.nedits);
        for (uint32_t k = 0; k < chain.nedits; k++)
            peal_finding_edit(&task->findings, f, chain.edits[k].offset, 0, text);
        return;
    }
}

void peal_files_find_fixes(const struct peal_files_job *job, struct peal_file_task *task,
                           const struct peal_import *import)
{
    struct peal_fix_site site;
    for (size_t i = 0; i < task->findings.list.len; i++) {
        struct peal_finding *f = &task->findings.list.at[i];
        if (f->nedits && try_edits(job, task, f, NULL) == WORSE)
            f->nedits = 0;
    }
    if (!find_site(task, &site))
        return;
    struct peal_findings proposals;
    peal_findings_init(&proposals);
    peal_import_propose(import, &site, &proposals);
    for (size_t i = 0; i < proposals.list.len; i++) {
        const struct peal_finding *p = &proposals.list.at[i];
        if (try_edits(job, task, p, NULL) != PROVED)
            continue;
        struct peal_finding *f = peal_finding_add(&task->findings, p->level, p->rule, p->pos,
                                                  "%s (verified)", p->message);
        for (uint32_t k = 0; k < p->nedits; k++)
            peal_finding_edit(&task->findings, f, p->edits[k].offset, p->edits[k].len,
                              p->edits[k].text);
        peal_findings_release(&proposals);
        return;
    }
    peal_findings_release(&proposals);
    if (task->facts.format == PEAL_FORMAT_MSCCLPP && !site.channel)
        find_chain(job, task, import, site);
}

/* --- patches --------------------------------------------------------------------------------- */

/* All edits of all fixes as one text, to be freed. NULL: there are none, or no memory. */
static char *fixed_text(const struct peal_file_task *task, size_t *len)
{
    struct peal_source at = task->source;
    char *text = NULL;
    for (size_t i = task->findings.list.len; i-- > 0;) {
        const struct peal_finding *f = &task->findings.list.at[i];
        if (!f->nedits)
            continue;
        /* Offsets are of the original: edits of attributes that several findings insert at one
         * place keep their order because the last finding is made first. */
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

static size_t line_end(const char *text, size_t at, size_t len)
{
    const char *end = memchr(text + at, '\n', len - at);
    return end ? (size_t)(end - text) + 1 : len;
}

/* Edits never add or remove line ends, so lines stay paired: a hunk for each that changed. */
static void put_patch(const char *path, const struct peal_source *from, const char *to, size_t len,
                      struct peal_text *out)
{
    peal_text_printf(out, "--- %s\n+++ %s\n", path, path);
    size_t a = 0, b = 0, line = 1;
    while (a < from->len && b < len) {
        size_t a_end = line_end(from->text, a, from->len), b_end = line_end(to, b, len);
        if (a_end - a != b_end - b || memcmp(from->text + a, to + b, a_end - a) != 0) {
            peal_text_printf(out, "@@ -%zu +%zu @@\n-", line, line);
            peal_text_add(out, from->text + a, a_end - a);
            peal_text_puts(out, "+");
            peal_text_add(out, to + b, b_end - b);
        }
        a = a_end;
        b = b_end;
        line++;
    }
}

/* Writes beside the file, keeps the file as FILE.orig, and puts the new one in its place. */
static bool replace_file(const char *path, const char *text, size_t len, struct peal_text *said)
{
    struct peal_text temporary = {0}, backup = {0};
    struct stat info;
    peal_text_printf(&temporary, "%s.XXXXXX", path);
    peal_text_printf(&backup, "%s.orig", path);
    int fd = temporary.failed || backup.failed ? -1 : mkstemp(temporary.at);
    bool good = fd >= 0 && stat(path, &info) == 0 && fchmod(fd, info.st_mode & 07777) == 0;
    for (size_t at = 0; good && at < len;) {
        ssize_t n = write(fd, text + at, len - at);
        good = n > 0;
        at += good ? (size_t)n : 0;
    }
    good = good && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    good = good && link(path, peal_text_get(&backup)) == 0 && rename(temporary.at, path) == 0;
    if (good)
        peal_text_printf(said, "%s: fixed; the file as it was is %s\n", path,
                         peal_text_get(&backup));
    else
        peal_text_printf(said, "%s: not fixed: %s%s\n", path, strerror(errno),
                         errno == EEXIST ? " (its backup .orig is there already)" : "");
    if (!good && fd >= 0)
        unlink(temporary.at);
    peal_text_release(&temporary);
    peal_text_release(&backup);
    return good;
}

void peal_files_use_fixes(const struct peal_files_job *job, struct peal_file_task *task)
{
    size_t len;
    struct peal_text said = {0};
    char *text = fixed_text(task, &len);
    if (!text)
        return;
    put_patch(task->path, &task->source, text, len, &said);
    if (job->fix)
        task->fixed = replace_file(task->path, text, len, &said);
    task->patch = peal_arena_copy(&task->arena, peal_text_get(&said), said.len);
    peal_text_release(&said);
    free(text);
}
