/* SPDX-License-Identifier: Apache-2.0 */
/* What RCCL will do with an MSCCL file: would it load it, when would it choose it, and how many
 * chunks does it keep in flight. Facts as of RCCL's parser and interpreter, see docs/formats.md. */
#include "import/msccl/msccl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST_BLOCKS = 64, MOST_STEPS = 64, MOST_COUNT = 72, MOST_ATTRIBUTES = 16 };

struct judge {
    const struct peal_import *import;
    const struct msccl_algo *algo;
    struct peal_findings *out;
    bool loads;
};

static struct peal_pos pos_at(const struct judge *j, uint32_t line, uint32_t col, uint32_t len)
{
    return (struct peal_pos){j->import->source, line, col, len};
}

static struct peal_pos algo_pos(const struct judge *j)
{
    return pos_at(j, j->algo->line, j->algo->col, 5);
}

/* An attribute of algo that RCCL wants, with what would keep the meaning. */
static void judge_attribute(struct judge *j, uint32_t flag, const char *name, const char *value)
{
    char text[64];
    if (j->algo->has & flag)
        return;
    j->loads = false;
    struct peal_finding *finding = peal_finding_add(
        j->out, PEAL_FINDING_WARNING, "msccl-missing-attribute", algo_pos(j),
        "'algo' has no attribute '%s': RCCL does not load the file, and says so only in its log",
        name);
    snprintf(text, sizeof text, " %s=\"%s\"", name, value);
    peal_finding_edit(j->out, finding, j->algo->tag_end, 0, text);
}

static void judge_attributes(struct judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char channels[16];
    int32_t most = 0;
    for (uint32_t t = 0; t < algo->ntbs; t++)
        most = algo->tbs[t].chan + 1 > most ? algo->tbs[t].chan + 1 : most;
    snprintf(channels, sizeof channels, "%d", most > 1 ? most : 1);
    judge_attribute(j, MSCCL_HAS_NCHANNELS, "nchannels", channels);
    judge_attribute(j, MSCCL_HAS_INPLACE, "inplace", algo->inplace ? "1" : "0");
    judge_attribute(j, MSCCL_HAS_OUTOFPLACE, "outofplace", algo->outofplace ? "1" : "0");
    judge_attribute(j, MSCCL_HAS_MINBYTES, "minBytes", "0");
    judge_attribute(j, MSCCL_HAS_MAXBYTES, "maxBytes", "0");
    static const char *const of_algo[] = {"nchannels", "inplace",  "outofplace",
                                          "minBytes",  "maxBytes", "name"};
    const char *missing = algo->missing.attribute;
    for (size_t i = 0; missing && i < sizeof of_algo / sizeof *of_algo; i++)
        missing = strcmp(missing, of_algo[i]) == 0 ? NULL : missing;
    if (missing) {
        j->loads = false;
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-missing-attribute", algo->missing.pos,
                         "'%s' has no attribute '%s': RCCL does not load the file",
                         algo->missing.element, missing);
    }
    if (algo->most_attributes > MOST_ATTRIBUTES)
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-attributes", algo->most_attributes_at,
                         "%u attributes: RCCL reads the first %d of an element",
                         algo->most_attributes, MOST_ATTRIBUTES);
}

/* The first of each rule is enough: generated files break one a thousand times. */
static void refuse(struct judge *j, const char *rule, struct peal_pos pos, const char *why)
{
    j->loads = false;
    for (size_t i = 0; i < j->out->list.len; i++) {
        if (strcmp(j->out->list.at[i].rule, rule) == 0)
            return;
    }
    peal_finding_add(j->out, PEAL_FINDING_WARNING, rule, pos, "%s", why);
}

/* RCCL takes the waits of nops into the next op, which must have a wait of its own. */
static bool nop_is_lost(const struct msccl_algo *algo, const struct msccl_tb *tb, uint32_t s)
{
    const struct msccl_step *step = &algo->steps[tb->first + s];
    bool last = s + 1 == tb->count;
    return step->type == MSCCL_NOP && step->depid >= 0 && !last && step[1].depid < 0 &&
           step[1].type != MSCCL_NOP;
}

static void judge_block(struct judge *j, const struct msccl_gpu *gpu, const struct msccl_tb *tb)
{
    const struct msccl_algo *algo = j->algo;
    char why[160];
    if (tb->count > MOST_STEPS) {
        const struct msccl_step *step = &algo->steps[tb->first + MOST_STEPS];
        snprintf(why, sizeof why, "%u steps in thread block %d of gpu %d: RCCL loads at most %d",
                 tb->count, tb->id, gpu->id, MOST_STEPS);
        refuse(j, "msccl-steps", pos_at(j, step->line, step->col, 5), why);
    }
    for (uint32_t s = 0; s < tb->count; s++) {
        const struct msccl_step *step = &algo->steps[tb->first + s];
        struct peal_pos pos = pos_at(j, step->line, step->col, 5);
        if (step->cnt >= MOST_COUNT) {
            snprintf(why, sizeof why, "cnt %d: RCCL loads files with less than %d", step->cnt,
                     MOST_COUNT);
            refuse(j, "msccl-count", pos, why);
        }
        if (nop_is_lost(algo, tb, s))
            refuse(j, "msccl-nop", pos,
                   "the step after this nop waits for nothing itself: RCCL does not load such a "
                   "chain of dependencies");
    }
}

static void judge_blocks(struct judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char why[160];
    for (uint32_t g = 0; g < algo->ngpus; g++) {
        const struct msccl_gpu *gpu = &algo->gpus[g];
        if (gpu->count > MOST_BLOCKS) {
            const struct msccl_tb *tb = &algo->tbs[gpu->first + MOST_BLOCKS];
            snprintf(why, sizeof why, "%u thread blocks on gpu %d: RCCL loads at most %d",
                     gpu->count, gpu->id, MOST_BLOCKS);
            refuse(j, "msccl-blocks", pos_at(j, tb->line, tb->col, 3), why);
        }
        for (uint32_t t = 0; t < gpu->count; t++) {
            const struct msccl_tb *tb = &algo->tbs[gpu->first + t];
            if (tb->id != (int32_t)t) {
                snprintf(why, sizeof why,
                         "thread block %u of gpu %d is missing: RCCL wants them "
                         "without gaps",
                         t, gpu->id);
                refuse(j, "msccl-blocks", pos_at(j, tb->line, tb->col, 3), why);
                break;
            }
            judge_block(j, gpu, tb);
        }
    }
    if (strcmp(j->import->facts.collective, "custom") == 0)
        refuse(j, "msccl-collective", algo_pos(j), "RCCL knows no collective 'custom'");
}

static void put_size(char *out, size_t size, const char *before, int64_t bytes)
{
    char text[24];
    snprintf(out, size, "%s%s", before, peal_size_format((uint64_t)bytes, text));
}

static bool is_unknown(const struct judge *j)
{
    return strcmp(j->import->facts.collective, "custom") == 0;
}

/* One sentence: for which calls RCCL takes it. */
static void judge_choice(struct judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char from[48] = "", to[48] = "", any[] = "of any size";
    bool ends = algo->max_bytes > 0;
    if (algo->min_bytes > 0)
        put_size(from, sizeof from, "from ", algo->min_bytes);
    if (ends)
        put_size(to, sizeof to, algo->min_bytes > 0 ? " to " : "up to ", algo->max_bytes);
    if (is_unknown(j))
        return;
    const char *place = "out of place";
    if (algo->inplace)
        place = algo->outofplace ? "in or out of place" : "in place";
    if (!algo->inplace && !algo->outofplace) {
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-never-chosen", algo_pos(j),
                         "neither inplace nor outofplace is 1: RCCL never chooses it");
        return;
    }
    if (ends && algo->max_bytes < algo->min_bytes) {
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-never-chosen", algo_pos(j),
                         "maxBytes is below minBytes: RCCL never chooses it");
        return;
    }
    peal_finding_add(j->out, PEAL_FINDING_NOTE, "msccl-choice", algo_pos(j),
                     "RCCL %s chooses it for %s on %u ranks, %s, %s%s%s%s, where count%s is a "
                     "multiple of %u",
                     j->loads ? "loads it and" : "would not load it; with that fixed it",
                     j->import->facts.collective, algo->nranks, place, "messages ", from, to,
                     *from || *to ? "" : any, algo->mult > 1 ? " x ranks" : "", algo->nchunks);
}

void peal_msccl_judge(const struct peal_import *import, uint32_t least_depth,
                      struct peal_findings *out)
{
    struct judge j = {.import = import, .algo = import->msccl, .out = out, .loads = true};
    judge_attributes(&j);
    judge_blocks(&j);
    judge_choice(&j);
    uint32_t given = import->facts.depth;
    if (least_depth > given)
        peal_finding_add(out, PEAL_FINDING_ERROR, "msccl-fifo-depth", algo_pos(&j),
                         "chunks in flight: needs %u, RCCL gives %u: deadlock (%s)", least_depth,
                         given, import->facts.protocol);
    else if (least_depth)
        peal_finding_add(out, PEAL_FINDING_NOTE, "msccl-fifo-depth", algo_pos(&j),
                         "chunks in flight: needs %u, RCCL gives %u (%s)", least_depth, given,
                         import->facts.protocol);
}
