/* SPDX-License-Identifier: Apache-2.0 */
/* What is written is read back as the same plan, and a text with a fault is not proved: every line
 * that synchronises or moves data is removed in turn, and numbers are changed. */
#include "base/tests/unit.h"
#include "export/pto/pto.h"

#include "plan/tests/made.h"

struct fixture {
    struct made made;
    struct peal_exported files;
};

static void begin(struct fixture *f, const char *kernel, uint32_t ranks, int64_t count)
{
    struct peal_bind bind = {.nranks = ranks,
                             .rank = PEAL_NONE,
                             .dtype = PEAL_F32,
                             .reduce = PEAL_SUM,
                             .no_fuse = true,
                             .symmetric = true};
    *f = (struct fixture){0};
    made_begin(&f->made, kernel);
    f->made.plan = made_plan(&f->made, bind, count);
    peal_text_puts(&f->files.name, kernel);
    assert_true(peal_pto_write(f->made.plan, kernel, true, &f->made.diags, &f->files));
}

static void end(struct fixture *f)
{
    peal_exported_release(&f->files);
    made_end(&f->made);
}

/* Is a text with this kernel proved? Also false if it cannot be read. */
static bool is_proved(const struct fixture *f, const char *kernel)
{
    struct peal_plan *plan = NULL;
    struct peal_verification *v = NULL;
    struct peal_verify_options options = {0};
    const char *header = peal_text_get(&f->files.files[0].text);
    enum peal_status status =
        peal_pto_read(header, kernel, peal_text_get(&f->files.name), f->made.plan, NULL, &plan);
    bool proved = status == PEAL_OK && peal_verify_plan(plan, &options, &v) == PEAL_OK &&
                  v->verdict == PEAL_PROVED && v->reuse >= PEAL_REUSE_REPEATABLE;
    peal_verification_free(v);
    free(plan);
    return proved;
}

static const char *kernel_text(const struct fixture *f)
{
    return peal_text_get(&f->files.files[1].text);
}

static const char *first_block(const struct fixture *f)
{
    return strstr(kernel_text(f), "AICORE inline void Rank0Block0");
}

TEST(what_is_written_is_the_same_plan)
{
    static const struct {
        int line;
        const char *kernel;
        uint32_t ranks;
        int64_t count;
    } rows[] = {
        {__LINE__, "allreduce_ring", 4, 20},      {__LINE__, "allreduce_biring", 3, 9},
        {__LINE__, "allreduce_chunked", 4, 12},   {__LINE__, "allreduce_mesh2d", 6, 5},
        {__LINE__, "broadcast_pipe", 3, 8},       {__LINE__, "allgather_pull", 3, 7},
        {__LINE__, "reduce_scatter_mesh", 2, 8},  {__LINE__, "allreduce_halving", 5, 16},
        {__LINE__, "all_to_all_pairwise", 4, 16}, {__LINE__, "allreduce_ring", 2, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        begin(&f, rows[i].kernel, rows[i].ranks, rows[i].count);
        if (!is_proved(&f, kernel_text(&f)))
            fail_msg("line %d: not proved when read back", rows[i].line);
        end(&f);
    }
}

/* The kernel without the line that begins at `line`, to be freed. */
static char *without_line(const char *text, const char *line)
{
    const char *end = strchr(line, '\n') + 1;
    char *out = malloc(strlen(text) + 1);
    assert_non_null(out);
    memcpy(out, text, (size_t)(line - text));
    strcpy(out + (line - text), end);
    return out;
}

static bool is_op(const char *line)
{
    static const char *const ops[] = {"    Copy(", "    Combine<", "    Notify(", "    Wait(",
                                      "    Send(", "    Receive(", "    if (",    "    pipe_"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strncmp(line, ops[i], strlen(ops[i])) == 0)
            return true;
    }
    return false;
}

TEST(no_line_can_be_left_out)
{
    static const char *const kernels[] = {"allreduce_ring", "allreduce_chunked", "allgather_pull"};
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        struct fixture f;
        begin(&f, kernels[i], 3, 9);
        const char *end_of_ops = strstr(kernel_text(&f), "AICORE inline void RunOne");
        for (const char *at = first_block(&f); at < end_of_ops; at = strchr(at, '\n') + 1) {
            if (!is_op(at))
                continue;
            char *text = without_line(kernel_text(&f), at);
            if (is_proved(&f, text))
                fail_msg("%s: proved without '%.*s'", kernels[i], (int)strcspn(at, "\n"), at);
            free(text);
        }
        end(&f);
    }
}

/* The kernel with the first `from` after the head of its blocks replaced, to be freed. */
static char *replaced(const struct fixture *f, const char *begin_at, const char *from,
                      const char *to)
{
    const char *text = kernel_text(f);
    const char *at = strstr(strstr(text, begin_at), from);
    assert_non_null(at);
    char *out = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(out);
    memcpy(out, text, (size_t)(at - text));
    strcpy(out + (at - text), to);
    strcat(out, at + strlen(from));
    return out;
}

TEST(changed_numbers_are_found)
{
    static const char block[] = "AICORE inline void Rank0Block0",
                      channel[] = "constexpr Channel c0";
    static const struct {
        int line;
        const char *kernel, *in, *from, *to;
    } rows[] = {
        {__LINE__, "allreduce_ring", block, "Wait(r, 0, 1, 0, 4)", "Wait(r, 0, 1, 0, 5)"},
        {__LINE__, "allreduce_ring", block, "Wait(r, 0, 1, 0, 4)", "Wait(r, 0, 1, 1, 4)"},
        {__LINE__, "allreduce_ring", block, "Wait(r, 0, 2, 0, 4)", "Wait(r, 0, 1, 0, 4)"},
        {__LINE__, "allreduce_ring", block, "Notify(r, 1, 0, 1)", "Notify(r, 2, 0, 1)"},
        {__LINE__, "allreduce_ring", block, "Notify(r, 1, 0, 1)", "Notify(r, 9, 0, 1)"},
        {__LINE__, "allreduce_ring", block, "Notify(r, 1, 0, 1)", "Notify(r, 1, 99, 1)"},
        {__LINE__, "allreduce_ring", block, "Combine<Add>", "Combine<Max>"},
        {__LINE__, "allreduce_ring", block, "b2_part + 3", "b2_part + 6"},
        {__LINE__, "allreduce_ring", block, "b2_part + 3", "b2_part + 99"},
        {__LINE__, "allreduce_ring", block, "At(r, 2, b2", "At(r, 1, b2"},
        {__LINE__, "allreduce_ring", "struct Run", "pipe_barrier(PIPE_ALL)", "(void)0"},
        {__LINE__, "allreduce_ring", "struct Run", "AtomicAdd", "Set"},
        {__LINE__, "allreduce_chunked", block, "Send(r, c0, 0", "Send(r, c0, 1"},
        {__LINE__, "allreduce_chunked", block, "Send(r, c0, 0, 3", "Send(r, c0, 0, 2"},
        {__LINE__, "allreduce_chunked", channel, "{0, 1, 0, 1, 2,", "{0, 1, 0, 0, 2,"},
        {__LINE__, "allreduce_chunked", channel, "{0, 1, 0, 1, 2,", "{0, 1, 2, 1, 2,"},
        {__LINE__, "allreduce_chunked", channel, "{0, 1, 0, 1, 2, 4", "{0, 1, 0, 1, 2, 3"},
        {__LINE__, "broadcast_pipe", block, "Pick(r, 0, 9)", "Pick(r, 0, 0)"},
        {__LINE__, "broadcast_pipe", block, "Pick(r, 0, 9)", "Pick(r, 9, 0)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct fixture f;
        begin(&f, rows[i].kernel, 3, 9);
        assert_true(is_proved(&f, kernel_text(&f)));
        char *text = replaced(&f, rows[i].in, rows[i].from, rows[i].to);
        if (is_proved(&f, text))
            fail_msg("line %d: proved all the same", rows[i].line);
        free(text);
        end(&f);
    }
}

int main(void)
{
    return unit_run();
}
