/* SPDX-License-Identifier: Apache-2.0 */
/* The constants that kernel, orchestration and driver share: sizes, places, and what the driver has
 * to know about the collective. */
#include "export/pto/pto.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void peal_pto_text(const char *file, const char *name, struct peal_text *out)
{
    static const char mark[] = "@NAME@";
    for (size_t i = 0; i < peal_pto_text_count; i++) {
        const char *base = strrchr(peal_pto_texts[i].name, '/') + 1;
        if (strncmp(base, file, strlen(file)) != 0)
            continue;
        const char *at = peal_pto_texts[i].text;
        for (const char *next; (next = strstr(at, mark)); at = next + strlen(mark)) {
            peal_text_add(out, at, (size_t)(next - at));
            peal_text_puts(out, name);
        }
        peal_text_puts(out, at);
    }
}

/* The length of this rank's block: that of the side that is a block, otherwise an even part of the
 * longest input. */
static uint64_t block_len(const struct peal_plan *plan, uint32_t rank)
{
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    bool one_buffer = plan->contract_in == plan->contract_out;
    if (info->in == PEAL_SIDE_BLOCK && !one_buffer)
        return peal_plan_len(plan, rank, plan->contract_in);
    if (info->out == PEAL_SIDE_BLOCK && !one_buffer)
        return peal_plan_len(plan, rank, plan->contract_out);
    uint64_t longest = peal_plan_len(plan, 0, plan->contract_in);
    for (uint32_t r = 0; r < plan->nranks; r++) {
        uint64_t len = peal_plan_len(plan, r, plan->contract_in);
        if (len > longest)
            longest = len;
    }
    return peal_size_part(rank + 1, longest, plan->nranks) -
           peal_size_part(rank, longest, plan->nranks);
}

static uint64_t block_begin(const struct peal_plan *plan, uint32_t rank)
{
    uint64_t begin = 0;
    for (uint32_t q = 0; q < rank; q++)
        begin += block_len(plan, q);
    return begin;
}

/* Where a rank's input or output begins. In place, one of them is a part of the other; in one
 * buffer, a side that is its own block begins at that block. */
static uint64_t side_begin(const struct pto_window *w, uint32_t rank, uint32_t buf,
                           enum peal_side side)
{
    const struct peal_plan *plan = w->plan;
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    uint32_t whole = peal_plan_bufs(plan)[buf].alias;
    bool at_root = peal_side_is_roots(info->in) || peal_side_is_roots(info->out);
    bool shared = whole != PEAL_NONE || plan->contract_in == plan->contract_out;
    if (!shared || (at_root && whole != PEAL_NONE && rank != plan->root))
        return w->start[buf];
    uint64_t start = w->start[whole == PEAL_NONE ? buf : whole];
    if (side == PEAL_SIDE_BLOCK)
        return start + block_begin(plan, rank);
    return start;
}

static uint64_t side_len(const struct peal_plan *plan, uint32_t rank, uint32_t buf,
                         enum peal_side side)
{
    if (plan->contract_in == plan->contract_out && side == PEAL_SIDE_BLOCK)
        return block_len(plan, rank);
    return peal_plan_len(plan, rank, buf);
}

static void put_array(struct peal_text *out, const char *name, const uint64_t *values, uint32_t n)
{
    peal_text_printf(out, "constexpr uint64_t %s[kRanks] = {", name);
    for (uint32_t i = 0; i < n; i++)
        peal_text_printf(out, "%s%" PRIu64, i ? ", " : "", values[i]);
    peal_text_puts(out, "};\n");
}

/* The sides of the collective; all zero if it has no data. */
static void put_sides(const struct pto_window *w, struct peal_text *out)
{
    const struct peal_plan *plan = w->plan;
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    bool data = info->in != PEAL_SIDE_NONE && plan->contract_in < plan->bufs.count &&
                plan->contract_out < plan->bufs.count;
    size_t n = plan->nranks;
    uint64_t *all = calloc(5 * n, sizeof *all);
    if (!all) {
        out->failed = true;
        return;
    }
    uint64_t *input = all, *input_len = all + n, *output = all + 2 * n, *output_len = all + 3 * n;
    uint64_t *block = all + 4 * n;
    for (uint32_t r = 0; r < (data ? plan->nranks : 0); r++) {
        input[r] = side_begin(w, r, plan->contract_in, info->in);
        input_len[r] = side_len(plan, r, plan->contract_in, info->in);
        output[r] = side_begin(w, r, plan->contract_out, info->out);
        output_len[r] = side_len(plan, r, plan->contract_out, info->out);
        block[r] = block_len(plan, r);
    }
    peal_text_puts(out, "\n// Input and output of each rank, in elements of the data.\n");
    put_array(out, "kInput", input, plan->nranks);
    put_array(out, "kInputLength", input_len, plan->nranks);
    put_array(out, "kOutput", output, plan->nranks);
    put_array(out, "kOutputLength", output_len, plan->nranks);
    put_array(out, "kBlock", block, plan->nranks);
    free(all);
}

static const char *collective_name(const struct peal_plan *plan)
{
    static const char *const names[] = {
        [PEAL_CONTRACT_ALLREDUCE] = "Allreduce",
        [PEAL_CONTRACT_ALLGATHER] = "Allgather",
        [PEAL_CONTRACT_REDUCE_SCATTER] = "ReduceScatter",
        [PEAL_CONTRACT_BROADCAST] = "Broadcast",
        [PEAL_CONTRACT_REDUCE] = "Reduce",
        [PEAL_CONTRACT_GATHER] = "Gather",
        [PEAL_CONTRACT_SCATTER] = "Scatter",
        [PEAL_CONTRACT_SCAN] = "Scan",
        [PEAL_CONTRACT_EXSCAN] = "Exscan",
        [PEAL_CONTRACT_ALL_TO_ALL] = "Alltoall",
    };
    bool known = plan->contract < sizeof names / sizeof *names && names[plan->contract];
    if (known)
        return names[plan->contract];
    return "None";
}

static const char *reduction_name(const struct peal_plan *plan)
{
    switch (plan->reduce) {
    case PEAL_SUM:
        return "Sum";
    case PEAL_PROD:
        return "Prod";
    case PEAL_MAX:
        return "Max";
    case PEAL_MIN:
        return "Min";
    default:
        return "None";
    }
}

static void put_collective(const struct pto_window *w, bool closed, struct peal_text *out)
{
    const struct peal_plan *plan = w->plan;
    const struct peal_contract_info *info = peal_contract_info((enum peal_contract)plan->contract);
    bool blocks = peal_side_has_blocks(info->in) || peal_side_has_blocks(info->out);
    bool varies = plan->contract == PEAL_CONTRACT_ALL_TO_ALL || info->out == PEAL_SIDE_BLOCK;
    int root = -1;
    if (plan->root < plan->nranks)
        root = (int)plan->root;
    const char *has_blocks = blocks && !varies ? "true" : "false";
    const char *is_closed = closed ? "true" : "false";
    peal_text_printf(
        out,
        "\n// The collective, for the driver.\n"
        "enum class Collective { None, Allreduce, Allgather, ReduceScatter, Broadcast, Reduce, "
        "Gather, Scatter, Scan, Exscan, Alltoall };\n"
        "enum class Reduction { None, Sum, Prod, Max, Min };\n"
        "constexpr Collective kCollective = Collective::%s;\n"
        "constexpr Reduction kReduction = Reduction::%s;\n"
        "constexpr int32_t kRoot = %d;\n"
        "constexpr bool kHasBlocks = %s; // the output has one block per rank\n"
        "constexpr bool kClosed = %s; // no rank's memory is used outside its launches\n",
        collective_name(plan), reduction_name(plan), root, has_blocks, is_closed);
}

static void put_buffers(const struct pto_window *w, struct peal_text *out)
{
    const struct peal_plan *plan = w->plan;
    for (uint32_t b = 0; b < plan->bufs.count; b++) {
        peal_text_puts(out, "constexpr uint64_t ");
        peal_pto_buf_name(plan, b, out);
        peal_text_printf(out, " = %" PRIu64 ";\n", w->start[b]);
    }
}

void peal_pto_header(const struct pto_window *w, const char *name, bool closed,
                     struct peal_text *out)
{
    const struct peal_plan *plan = w->plan;
    const char *type = peal_pto_type((enum peal_dtype)plan->dtype);
    uint64_t size = peal_dtype_size((enum peal_dtype)plan->dtype);
    uint64_t data = (uint64_t)w->cells * PTO_LINE;
    uint64_t bytes = (data + w->elements * size + PTO_LINE - 1) / PTO_LINE * PTO_LINE;
    peal_text_printf(
        out,
        "// SPDX-License-Identifier: Apache-2.0\n// %s for %u ranks: written by peal export from a "
        "plan that was proved, read back and "
        "proved again.\n//\n"
        "//     g++ -std=c++20 -O2 -D__CPU_SIM -I PTO_ISA/include %s_kernel.cpp "
        "%s_orchestration.cpp %s_driver.cpp -pthread\n//\n"
        "// Every rank has a window of kWindow bytes, zero before the first launch, that all ranks "
        "can address.\n"
        "#pragma once\n\n#include <cstdint>\n\nnamespace pto_%s {\n\n",
        name, plan->nranks, name, name, name, name);
    if (plan->dtype == PEAL_F16)
        peal_text_puts(out, "#if defined(__CPU_SIM)\nusing Elem = _Float16;\n#else\nusing Elem = "
                            "half;\n#endif\n");
    else
        peal_text_printf(out, "using Elem = %s;\n", type);
    peal_text_printf(
        out,
        "\nconstexpr int32_t kRanks = %u;\nconstexpr int32_t kBlocks = %u; // of a rank\n"
        "constexpr int64_t kPeriod = %u; // launches that take turns\n"
        "constexpr int64_t kTile = %d; // elements\n"
        "constexpr uint64_t kLine = %d; // bytes: a cell is alone in its cache line\n"
        "constexpr uint64_t kData = %" PRIu64 "; // bytes: %u cells come first\n"
        "constexpr uint64_t kWindow = %" PRIu64 "; // bytes\n"
        "constexpr int64_t kLaunches = %" PRId64
        "; // then all windows have to be zeroed: cells are 32 bits wide\n"
        "\n// Buffers, in elements of the data.\n",
        plan->nranks, w->blocks, plan->period, PTO_TILE, PTO_LINE, data, w->cells,
        bytes ? bytes : PTO_LINE, w->launches);
    put_buffers(w, out);
    put_sides(w, out);
    put_collective(w, closed, out);
    peal_text_printf(
        out,
        "\n// Starts launch number `launch` of one rank, with the windows of all; false: there is "
        "no such rank or launch.\n"
        "// A rank's launches are numbered from 0 and come one after the other.\n"
        "bool Launch(uint64_t *windows, int32_t rank, int64_t launch, void *stream);\n\n"
        "#if defined(__CPU_SIM)\n"
        "void RunBlock(uint64_t *windows, int32_t rank, int32_t block, int64_t launch);\n"
        "#else\n"
        "void StartBlocks(uint64_t *windows, int32_t rank, int64_t launch, void *stream);\n"
        "#endif\n\n} // namespace pto_%s\n",
        name);
}
