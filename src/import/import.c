/* SPDX-License-Identifier: Apache-2.0 */
/* The entrance: finds the format of a text, and calls that format's functions. */
#include "import/reader.h"

#include <stdlib.h>
#include <string.h>

enum peal_format peal_import_format(const char *text, size_t len)
{
    size_t i = len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < len && strchr(" \t\r\n", text[i]) && text[i])
        i++;
    if (i == len)
        return PEAL_FORMAT_NONE;
    if (text[i] == '<')
        return PEAL_FORMAT_MSCCL;
    if (len - i >= 15 && memcmp(text + i, "peal recording ", 15) == 0)
        return PEAL_FORMAT_RECORDING;
    return text[i] == '{' ? PEAL_FORMAT_MSCCLPP : PEAL_FORMAT_NONE;
}

static const struct peal_import_reader readers[] = {
    [PEAL_FORMAT_NONE] = {.name = "no known format"},
    [PEAL_FORMAT_MSCCL] = {"MSCCL XML", peal_msccl_read, peal_msccl_make, peal_msccl_count,
                           peal_msccl_rank_pos, peal_msccl_judge, peal_msccl_propose},
    [PEAL_FORMAT_MSCCLPP] = {"MSCCL++ JSON", peal_mscclpp_read, peal_mscclpp_make,
                             peal_mscclpp_count, peal_mscclpp_rank_pos, peal_mscclpp_judge,
                             peal_mscclpp_propose},
    [PEAL_FORMAT_RECORDING] = {"a recording", peal_recording_read, peal_recording_make,
                               peal_recording_count, peal_recording_rank_pos, peal_recording_judge,
                               NULL},
};

static const struct peal_import_reader *reader_of(const struct peal_import *import)
{
    return &readers[import->facts.format];
}

const char *peal_format_name(enum peal_format format)
{
    return readers[format].name;
}

enum peal_status peal_import_open(const struct peal_source *source, struct peal_diags *diags,
                                  struct peal_import **out)
{
    enum peal_format format = peal_import_format(source->text, source->len);
    if (format == PEAL_FORMAT_NONE) {
        peal_diag_error(diags, (struct peal_pos){source, 1, 1, 0},
                        "neither XML nor JSON: a plan of MSCCL begins with '<algo', one of MSCCL++ "
                        "with '{'");
        return PEAL_INVALID;
    }
    struct peal_import *import = calloc(1, sizeof *import);
    if (!import)
        return PEAL_NO_MEMORY;
    peal_arena_init(&import->arena, 0);
    import->source = source;
    import->facts.format = format;
    enum peal_status status = reader_of(import)->read(import, diags);
    if (status == PEAL_OK)
        *out = import;
    else
        peal_import_close(import);
    return status;
}

void peal_import_close(struct peal_import *import)
{
    if (!import)
        return;
    peal_arena_release(&import->arena);
    free(import);
}

const struct peal_import_facts *peal_import_facts(const struct peal_import *import)
{
    return &import->facts;
}

uint64_t peal_import_count(const struct peal_import *import)
{
    return reader_of(import)->count(import);
}

/* If a step writes onto a part of its own source, the result depends on which bytes the engine
 * moves first: no plan can express that (plan/format/format.h, Overlap). */
static bool has_overlap(const struct peal_import *import, const struct peal_plan *plan,
                        struct peal_diags *diags)
{
    const struct peal_op *ops = peal_plan_ops(plan);
    for (uint64_t i = 0; i < plan->ops.count * plan->period; i++) {
        const struct peal_op *op = &ops[i / plan->period];
        if (!peal_op_overlaps(plan, op, (uint32_t)(i % plan->period)))
            continue;
        struct peal_pos pos = {.source = import->source};
        if (op->pos != PEAL_NONE) {
            const struct peal_position *at = &peal_plan_positions(plan)[op->pos];
            pos.line = at->line;
            pos.col = at->col;
            pos.len = at->len;
        }
        peal_diag_error(diags, pos, "this writes onto a part of what it reads");
        return true;
    }
    return false;
}

enum peal_status peal_import_plan(const struct peal_import *import,
                                  const struct peal_import_options *options,
                                  struct peal_diags *diags, struct peal_plan **out)
{
    bool reduces = options->reduce == PEAL_AVG;
    if (reduces && peal_contract_info(import->facts.contract)->has_reduce) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "the format has no place for the division of 'avg'");
        return PEAL_INVALID;
    }
    struct peal_plan *plan = NULL;
    enum peal_status status = reader_of(import)->make(import, options, diags, &plan);
    if (status != PEAL_OK)
        return status;
    if (has_overlap(import, plan, diags)) {
        free(plan);
        return PEAL_INVALID;
    }
    *out = plan;
    return PEAL_OK;
}

struct peal_pos peal_import_rank_pos(const struct peal_import *import, uint32_t rank)
{
    return reader_of(import)->rank_pos(import, rank);
}

void peal_import_judge(const struct peal_import *import, uint32_t least_depth,
                       struct peal_findings *out)
{
    reader_of(import)->judge(import, least_depth, out);
}

void peal_import_propose(const struct peal_import *import, const struct peal_fix_site *site,
                         struct peal_findings *out)
{
    if (reader_of(import)->propose)
        reader_of(import)->propose(import, site, out);
}

bool peal_import_contract(const char *name, enum peal_contract *out)
{
    static const struct {
        const char *name;
        enum peal_contract contract;
    } table[] = {
        {"allreduce", PEAL_CONTRACT_ALLREDUCE},
        {"all_reduce", PEAL_CONTRACT_ALLREDUCE},
        {"allgather", PEAL_CONTRACT_ALLGATHER},
        {"all_gather", PEAL_CONTRACT_ALLGATHER},
        {"reducescatter", PEAL_CONTRACT_REDUCE_SCATTER},
        {"reduce_scatter", PEAL_CONTRACT_REDUCE_SCATTER},
        {"alltoall", PEAL_CONTRACT_ALL_TO_ALL},
        {"all_to_all", PEAL_CONTRACT_ALL_TO_ALL},
        {"broadcast", PEAL_CONTRACT_BROADCAST},
        {"reduce", PEAL_CONTRACT_REDUCE},
        {"gather", PEAL_CONTRACT_GATHER},
        {"scatter", PEAL_CONTRACT_SCATTER},
        {"custom", PEAL_CONTRACT_NONE},
        {"send", PEAL_CONTRACT_NONE},
        {"recv", PEAL_CONTRACT_NONE},
        {"sendrecv", PEAL_CONTRACT_NONE},
        {"alltoallv", PEAL_CONTRACT_NONE},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) == 0) {
            *out = table[i].contract;
            return true;
        }
    }
    return false;
}

void peal_import_declare(struct peal_import_bufs *bufs, const struct peal_import_options *options,
                         uint32_t flags, bool writes_input, uint64_t count)
{
    struct peal_assembler *a = bufs->a;
    bool inout = bufs->in_place || writes_input;
    struct peal_buf_spec x = {
        .name = "x",
        .kind = PEAL_BUF_PARAM,
        .dir = inout ? PEAL_DIR_INOUT : PEAL_DIR_IN,
        .dtype = bufs->dtype,
        .flags = flags,
        .param = 0,
        .alias = PEAL_NONE,
        .len = bufs->x_len,
    };
    struct peal_buf_spec y = x;
    y.name = "y";
    y.dir = bufs->in_place ? PEAL_DIR_INOUT : PEAL_DIR_OUT;
    y.param = 1;
    y.len = bufs->y_len;
    bufs->x = peal_assembler_buf(a, &x);
    bufs->y = peal_assembler_buf(a, &y);
    if (bufs->in_place && peal_contract_gathers(bufs->contract))
        peal_assembler_alias(a, bufs->x, bufs->y);
    else if (bufs->in_place)
        peal_assembler_alias(a, bufs->y, bufs->x);
    struct peal_plan *header = peal_assembler_header(a);
    const struct peal_contract_info *info = peal_contract_info(bufs->contract);
    int64_t n = (int64_t)count;
    header->dtype = bufs->dtype;
    header->contract = bufs->contract;
    header->contract_in = bufs->x;
    header->contract_out = bufs->y;
    if (info->has_reduce)
        header->reduce = (uint32_t)options->reduce;
    else
        header->reduce = PEAL_NONE;
    if (info->has_root)
        header->root = bufs->root;
    else
        header->root = PEAL_NONE;
    peal_assembler_param(a, "n", false, 1, &n);
}

struct peal_ref peal_import_ref(const struct peal_import_bufs *bufs, int kind, uint32_t rank,
                                uint64_t first)
{
    bool input = kind == IMPORT_INPUT;
    uint32_t buf;
    if (input)
        buf = bufs->x;
    else
        buf = bufs->y;
    bool at_root = peal_contract_parts_on_root(bufs->contract);
    if (bufs->in_place && (!at_root || rank == bufs->root)) {
        if (input && peal_contract_gathers(bufs->contract)) {
            buf = bufs->y;
            first += rank * bufs->x_len;
        } else if (!input && peal_contract_scatters(bufs->contract)) {
            buf = bufs->x;
            first += rank * bufs->y_len;
        } else if (!input && !peal_contract_gathers(bufs->contract)) {
            buf = bufs->x;
        }
    }
    return peal_ref_make(rank, buf, bufs->dtype, first * peal_dtype_size(bufs->dtype));
}
