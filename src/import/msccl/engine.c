/* SPDX-License-Identifier: Apache-2.0 */
/* What RCCL will do with an MSCCL file: whether it would load it, when it would choose it, and how
 * many chunks it keeps in flight. Facts as of RCCL's parser and interpreter, see docs/formats.md.
 */
#include "import/msccl/msccl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_BLOCKS = 64,
    MAX_STEPS = 64,
    MAX_ATTRIBUTES = 16,
    MAX_NODES = 4096, /* nodes that a rank reads: algo, all gpus, its own blocks and steps */
    MAX_GPUS = 1024,
    MAX_FUSED = 16 /* reductions in a row */
};

struct engine_judge {
    const struct peal_import *import;
    const struct msccl_algo *algo;
    struct peal_findings *out;
    bool loads;
};

static struct peal_pos pos_at(const struct engine_judge *j, uint32_t line, uint32_t col,
                              uint32_t len)
{
    return (struct peal_pos){j->import->source, line, col, len};
}

static struct peal_pos algo_pos(const struct engine_judge *j)
{
    return pos_at(j, j->algo->line, j->algo->col, 5);
}

/* An attribute of algo that RCCL requires, and the value that would keep the meaning. */
static void judge_attribute(struct engine_judge *j, uint32_t flag, const char *name,
                            const char *value)
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

static bool is_one_of(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, list[i]) == 0)
            return true;
    }
    return false;
}

static void judge_attributes(struct engine_judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char channels[16];
    int32_t needed = 1;
    for (uint32_t t = 0; t < algo->ntbs; t++)
        if (algo->tbs[t].chan + 1 > needed)
            needed = algo->tbs[t].chan + 1;
    snprintf(channels, sizeof channels, "%d", needed);
    judge_attribute(j, MSCCL_HAS_NCHANNELS, "nchannels", channels);
    judge_attribute(j, MSCCL_HAS_INPLACE, "inplace", algo->inplace ? "1" : "0");
    judge_attribute(j, MSCCL_HAS_OUTOFPLACE, "outofplace", algo->outofplace ? "1" : "0");
    judge_attribute(j, MSCCL_HAS_MINBYTES, "minBytes", "0");
    judge_attribute(j, MSCCL_HAS_MAXBYTES, "maxBytes", "0");
    static const char *const of_algo[] = {"nchannels", "inplace",  "outofplace",
                                          "minBytes",  "maxBytes", "name"};
    const char *missing = algo->missing.attribute;
    if (missing && !is_one_of(missing, of_algo, sizeof of_algo / sizeof *of_algo)) {
        j->loads = false;
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-missing-attribute", algo->missing.pos,
                         "'%s' has no attribute '%s': RCCL does not load the file",
                         algo->missing.element, missing);
    }
    if (algo->max_attributes > MAX_ATTRIBUTES)
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-attributes", algo->max_attributes_at,
                         "%u attributes: RCCL reads the first %d of an element",
                         algo->max_attributes, MAX_ATTRIBUTES);
}

static void judge_elements(struct engine_judge *j)
{
    const struct msccl_algo *algo = j->algo;
    if (!algo->nstrange)
        return;
    char more[48] = "";
    if (algo->nstrange > 1)
        snprintf(more, sizeof more, ", and so are %u more", algo->nstrange - 1);
    peal_finding_add(j->out, PEAL_FINDING_NOTE, "msccl-element", algo->strange_at,
                     "the element '%s' is passed over, as RCCL's reader does%s", algo->strange,
                     more);
}

/* The first finding of each rule is enough: generated files may break a rule a thousand times. */
static void refuse(struct engine_judge *j, const char *rule, struct peal_pos pos, const char *why)
{
    j->loads = false;
    for (size_t i = 0; i < j->out->list.len; i++) {
        if (strcmp(j->out->list.at[i].rule, rule) == 0)
            return;
    }
    peal_finding_add(j->out, PEAL_FINDING_WARNING, rule, pos, "%s", why);
}

/* RCCL moves the waits of nops to the next op, which must have a wait of its own. */
static bool nop_is_lost(const struct msccl_algo *algo, const struct msccl_tb *tb, uint32_t s)
{
    const struct msccl_step *step = &algo->steps[tb->first + s];
    bool last = s + 1 == tb->count;
    return step->type == MSCCL_NOP && step->depid >= 0 && !last && step[1].depid < 0 &&
           step[1].type != MSCCL_NOP;
}

/* RCCL makes one step of consecutive reductions into one place, with the last one's count. */
static bool is_fused(const struct msccl_step *step, const struct msccl_step *before)
{
    return step->type == MSCCL_REDUCE && before->type == MSCCL_REDUCE && step->depid < 0 &&
           !before->hasdep && step->dstbuf == before->dstbuf && step->dstoff == before->dstoff &&
           step->srcbuf == before->srcbuf;
}

static void judge_dependencies(struct engine_judge *j)
{
    const struct msccl_step *step = &j->algo->stuck;
    if (!step->line)
        return;
    peal_finding_add(j->out, PEAL_FINDING_ERROR, "msccl-dependency",
                     pos_at(j, step->line, step->col, 5),
                     "thread block %d has no step from %d on with hasdep=\"1\": this step waits "
                     "forever",
                     step->depid, step->deps);
}

static void judge_reductions(struct engine_judge *j, const struct msccl_tb *tb)
{
    uint32_t chain = 1;
    for (uint32_t s = 1; s < tb->count; s++) {
        const struct msccl_step *step = &j->algo->steps[tb->first + s];
        bool fused = is_fused(step, step - 1) && chain < MAX_FUSED;
        if (fused)
            chain = chain + 1;
        else
            chain = 1;
        if (fused && step->cnt != step[-1].cnt) {
            refuse(j, "msccl-reductions", pos_at(j, step->line, step->col, 5),
                   "RCCL makes one step of these reductions into one place, and gives all of them "
                   "the last one's cnt");
            return;
        }
    }
}

static void judge_block(struct engine_judge *j, const struct msccl_gpu *gpu,
                        const struct msccl_tb *tb)
{
    const struct msccl_algo *algo = j->algo;
    char why[160];
    if (tb->count > MAX_STEPS) {
        const struct msccl_step *step = &algo->steps[tb->first + MAX_STEPS];
        snprintf(why, sizeof why, "%u steps in thread block %d of gpu %d: RCCL loads at most %d",
                 tb->count, tb->id, gpu->id, MAX_STEPS);
        refuse(j, "msccl-steps", pos_at(j, step->line, step->col, 5), why);
    }
    judge_reductions(j, tb);
    for (uint32_t s = 0; s < tb->count; s++) {
        const struct msccl_step *step = &algo->steps[tb->first + s];
        struct peal_pos pos = pos_at(j, step->line, step->col, 5);
        if (step->cnt >= MSCCL_CNT_LIMIT) {
            snprintf(why, sizeof why, "cnt %d: RCCL loads files with less than %d", step->cnt,
                     MSCCL_CNT_LIMIT);
            refuse(j, "msccl-count", pos, why);
        }
        if (nop_is_lost(algo, tb, s))
            refuse(j, "msccl-nop", pos,
                   "the step after this nop waits for nothing itself: RCCL does not load such a "
                   "chain of dependencies");
    }
}

static void judge_blocks(struct engine_judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char why[160];
    for (uint32_t g = 0; g < algo->ngpus; g++) {
        const struct msccl_gpu *gpu = &algo->gpus[g];
        if (gpu->count > MAX_BLOCKS) {
            const struct msccl_tb *tb = &algo->tbs[gpu->first + MAX_BLOCKS];
            snprintf(why, sizeof why, "%u thread blocks on gpu %d: RCCL loads at most %d",
                     gpu->count, gpu->id, MAX_BLOCKS);
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

/* Limits of RCCL's reader. */
static void judge_nodes(struct engine_judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char why[160];
    if (algo->ngpus > MAX_GPUS) {
        snprintf(why, sizeof why, "%u gpus: RCCL's reader has room for %d", algo->ngpus, MAX_GPUS);
        refuse(j, "msccl-nodes", algo_pos(j), why);
    }
    for (uint32_t g = 0; g < algo->ngpus; g++) {
        const struct msccl_gpu *gpu = &algo->gpus[g];
        uint64_t nodes = 1 + (uint64_t)algo->ngpus + gpu->count;
        for (uint32_t t = 0; t < gpu->count; t++)
            nodes += algo->tbs[gpu->first + t].count;
        if (nodes >= MAX_NODES) {
            snprintf(why, sizeof why,
                     "gpu %d needs %" PRIu64 " elements: RCCL's reader has room for %d", gpu->id,
                     nodes, MAX_NODES - 1);
            refuse(j, "msccl-nodes", pos_at(j, gpu->line, gpu->col, 4), why);
            return;
        }
    }
}

/* Other programs read more than RCCL does. A declaration can be removed. */
static void judge_syntax(struct engine_judge *j)
{
    const struct peal_source *source = j->import->source;
    struct peal_pos pos;
    const char *reason = peal_msccl_syntax(source, &pos);
    if (!reason)
        return;
    j->loads = false;
    struct peal_finding *finding =
        peal_finding_add(j->out, PEAL_FINDING_WARNING, "msccl-syntax", pos,
                         "RCCL's reader, which is not an XML parser, stops here: %s", reason);
    if (source->len < 2 || memcmp(source->text, "<?", 2) != 0)
        return;
    for (size_t i = 2; i + 1 < source->len; i++) {
        if (source->text[i] == '\n')
            return; /* edits do not change lines */
        if (memcmp(source->text + i, "?>", 2) == 0) {
            peal_finding_edit(j->out, finding, 0, i + 2, "");
            return;
        }
    }
}

static void put_size(char *out, size_t size, const char *before, int64_t bytes)
{
    char text[24];
    snprintf(out, size, "%s%s", before, peal_size_format((uint64_t)bytes, text));
}

static bool is_unknown(const struct engine_judge *j)
{
    return strcmp(j->import->facts.collective, "custom") == 0;
}

/* One sentence: for which calls RCCL chooses it. */
static void judge_choice(struct engine_judge *j)
{
    const struct msccl_algo *algo = j->algo;
    char from[48] = "", to[48] = "of any size";
    bool begins = algo->min_bytes > 0, ends = algo->max_bytes > 0;
    if (is_unknown(j))
        return;
    if (begins) {
        put_size(from, sizeof from, "from ", algo->min_bytes);
        to[0] = '\0';
    }
    if (ends)
        put_size(to, sizeof to, begins ? " to " : "up to ", algo->max_bytes);
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
    const char *loads = "would not load it; with that fixed it";
    if (j->loads)
        loads = "loads it and";
    char counts[64] = "";
    if (algo->nchunks > 1)
        snprintf(counts, sizeof counts, ", where count%s is a multiple of %u",
                 algo->mult > 1 ? " x ranks" : "", algo->nchunks);
    peal_finding_add(j->out, PEAL_FINDING_NOTE, "msccl-choice", algo_pos(j),
                     "RCCL %s chooses it for %s on %u ranks, %s, messages %s%s%s", loads,
                     j->import->facts.collective, algo->nranks, place, from, to, counts);
}

struct peal_pos peal_msccl_rank_pos(const struct peal_import *import, uint32_t rank)
{
    const struct msccl_gpu *gpu = &import->msccl->gpus[rank];
    return (struct peal_pos){import->source, gpu->line, gpu->col, 4};
}

void peal_msccl_judge(const struct peal_import *import, uint32_t least_depth,
                      struct peal_findings *out)
{
    struct engine_judge j = {.import = import, .algo = import->msccl, .out = out, .loads = true};
    judge_syntax(&j);
    judge_attributes(&j);
    judge_elements(&j);
    judge_blocks(&j);
    judge_dependencies(&j);
    judge_nodes(&j);
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
