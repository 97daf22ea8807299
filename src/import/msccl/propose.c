/* SPDX-License-Identifier: Apache-2.0 */
/* Proposals for a fault of an MSCCL file: a race between two blocks of a gpu gets a dependency, and
 * two blocks on one connection get separate channels. */
#include "import/msccl/msccl.h"

#include <stdio.h>
#include <string.h>

/* Where the value of an attribute of the tag at `at` begins. False: the tag has no such
 * attribute. */
static bool find_value(const struct peal_source *source, size_t at, const char *name,
                       struct peal_edit *out)
{
    size_t len = strlen(name);
    const char *text = source->text;
    for (size_t i = at; i + len + 2 < source->len && text[i] != '>'; i++) {
        bool blank = strchr(" \t\r\n", text[i]) != NULL;
        if (!blank || memcmp(text + i + 1, name, len) != 0 || text[i + 1 + len] != '=')
            continue;
        char quote = text[i + 2 + len];
        const char *end = memchr(text + i + 3 + len, quote, source->len - i - 3 - len);
        if (!end)
            return false;
        out->offset = i + 3 + len;
        out->len = (uint64_t)(end - text) - out->offset;
        return true;
    }
    return false;
}

static bool set_value(const struct peal_import *import, struct peal_findings *out,
                      struct peal_finding *finding, uint32_t line, uint32_t col, const char *name,
                      int32_t value)
{
    char text[16];
    struct peal_edit at;
    snprintf(text, sizeof text, "%d", value);
    if (!find_value(import->source, peal_edits_offset(import->source, line, col), name, &at))
        return false;
    peal_finding_edit(out, finding, at.offset, at.len, text);
    return true;
}

struct msccl_site {
    const struct msccl_gpu *gpu;
    const struct msccl_tb *tb;
    const struct msccl_step *step;
};

static bool find_step(const struct msccl_algo *algo, uint32_t line, uint32_t col,
                      struct msccl_site *out)
{
    for (uint32_t g = 0; g < algo->ngpus; g++) {
        const struct msccl_gpu *gpu = &algo->gpus[g];
        for (uint32_t t = gpu->first; t < gpu->first + gpu->count; t++) {
            const struct msccl_tb *tb = &algo->tbs[t];
            for (uint32_t s = tb->first; s < tb->first + tb->count; s++) {
                if (algo->steps[s].line == line && algo->steps[s].col == col) {
                    *out = (struct msccl_site){gpu, tb, &algo->steps[s]};
                    return true;
                }
            }
        }
    }
    return false;
}

/* Makes `later` wait for `first`. */
static void propose_dependency(const struct peal_import *import, const struct msccl_site *first,
                               const struct msccl_site *later, struct peal_findings *out)
{
    if (later->step->depid >= 0)
        return;
    struct peal_finding *f =
        peal_finding_add(out, PEAL_FINDING_NOTE, "fix-dependency",
                         (struct peal_pos){import->source, later->step->line, later->step->col, 5},
                         "fix: let step %d of thread block %d wait for step %d of thread block %d",
                         later->step->s, later->tb->id, first->step->s, first->tb->id);
    bool good =
        f &&
        set_value(import, out, f, later->step->line, later->step->col, "depid", first->tb->id) &&
        set_value(import, out, f, later->step->line, later->step->col, "deps", first->step->s) &&
        (first->step->hasdep ||
         set_value(import, out, f, first->step->line, first->step->col, "hasdep", 1));
    if (f && !good)
        out->list.len--;
}

static int32_t free_channel(const struct msccl_algo *algo)
{
    int32_t maximum = 0;
    for (uint32_t t = 0; t < algo->ntbs; t++) {
        if (algo->tbs[t].chan > maximum)
            maximum = algo->tbs[t].chan;
    }
    return maximum + 1;
}

/* The second block at one end gets a new channel, and so does one block at the other end. */
static void propose_channel(const struct peal_import *import, const struct msccl_site *second,
                            struct peal_findings *out)
{
    const struct msccl_algo *algo = import->msccl;
    bool sends = peal_msccl_types[second->step->type].sends;
    int32_t peer = sends ? second->tb->send : second->tb->recv, fresh = free_channel(algo);
    const struct msccl_gpu *gpu = &algo->gpus[peer];
    for (uint32_t t = gpu->count; t-- > 0;) {
        const struct msccl_tb *tb = &algo->tbs[gpu->first + t];
        int32_t back;
        if (sends)
            back = tb->recv;
        else
            back = tb->send;
        if (back != second->gpu->id || tb->chan != second->tb->chan)
            continue;
        struct peal_finding *f = peal_finding_add(
            out, PEAL_FINDING_NOTE, "fix-channel",
            (struct peal_pos){import->source, second->tb->line, second->tb->col, 3},
            "fix: give thread block %d of gpu %d and thread block %d of gpu %d "
            "channel %d",
            second->tb->id, second->gpu->id, tb->id, gpu->id, fresh);
        bool good = f &&
                    set_value(import, out, f, second->tb->line, second->tb->col, "chan", fresh) &&
                    set_value(import, out, f, tb->line, tb->col, "chan", fresh);
        struct peal_edit channels;
        size_t at = peal_edits_offset(import->source, algo->line, algo->col);
        if (good && algo->nchannels <= fresh &&
            find_value(import->source, at, "nchannels", &channels)) {
            char text[16];
            snprintf(text, sizeof text, "%d", fresh + 1);
            peal_finding_edit(out, f, channels.offset, channels.len, text);
        }
        if (f && !good)
            out->list.len--;
    }
}

void peal_msccl_propose(const struct peal_import *import, const struct peal_fix_site *site,
                        struct peal_findings *out)
{
    struct msccl_site a, b;
    if (site->deadlock || !find_step(import->msccl, site->line[0], site->col[0], &a) ||
        !find_step(import->msccl, site->line[1], site->col[1], &b))
        return;
    if (site->channel) {
        propose_channel(import, &b, out);
        propose_channel(import, &a, out);
    } else if (a.gpu == b.gpu && a.tb != b.tb) {
        propose_dependency(import, &a, &b, out);
        propose_dependency(import, &b, &a, out);
    }
}
