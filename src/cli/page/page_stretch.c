/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: clipped, stored over others and combined. See page_stretch.h. */
#include "cli/page/page_stretch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 200 }; /* bytes of an expression; longer ones are shortened */

void peal_stretches_add(struct peal_page *page, struct peal_stretches *list,
                        struct peal_stretch stretch)
{
    if (stretch.count && !peal_vec_push(list, stretch))
        page->failed = true;
}

struct peal_stretch peal_stretch_clip(struct peal_stretch stretch, uint64_t from, uint64_t to,
                                      uint64_t unit)
{
    uint64_t end = stretch.first + stretch.count;
    struct peal_stretch part = stretch;
    part.first = peal_size_max(from, stretch.first);
    part.count = (peal_size_min(to, end)) - part.first;
    part.index += (part.first - stretch.first) * unit / stretch.size;
    return part;
}

void peal_stretches_put(struct peal_page *page, struct peal_stretches *list,
                        struct peal_stretch stretch)
{
    struct peal_stretches fresh = {0};
    uint64_t from = stretch.first, to = stretch.first + stretch.count;
    bool done = false;
    for (size_t i = 0; i < list->len; i++) {
        struct peal_stretch old = list->at[i];
        uint64_t end = old.first + old.count;
        if (old.first < from)
            peal_stretches_add(page, &fresh,
                               peal_stretch_clip(old, old.first, peal_size_min(from, end), 1));
        if (!done && end > from) {
            peal_stretches_add(page, &fresh, stretch);
            done = true;
        }
        if (end > to)
            peal_stretches_add(page, &fresh,
                               peal_stretch_clip(old, peal_size_max(to, old.first), end, 1));
    }
    if (!done)
        peal_stretches_add(page, &fresh, stretch);
    free(list->at);
    *list = fresh;
}

uint32_t peal_stretch_text(struct peal_page *page, const struct peal_stretch *stretch,
                           uint64_t count, uint64_t own_index)
{
    const char *text = peal_page_get(page, stretch->text);
    if (!stretch->text || !stretch->indexed || stretch->index == own_index)
        return stretch->text;
    uint64_t from = stretch->index, to = stretch->index + count;
    if (strchr(text, ' '))
        return peal_page_printf(page, "(%s)[%" PRIu64 " .. %" PRIu64 ")", text, from, to);
    return peal_page_printf(page, "%s[%" PRIu64 " .. %" PRIu64 ")", text, from, to);
}

static const char *infix_of(enum peal_fn fn)
{
    const char *name = peal_fn_info(fn)->name;
    static const char *const words[][2] = {
        {"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(name, words[i][0]) == 0)
            return words[i][1];
    }
    return NULL;
}

/* The expression of one range of a compute's result, from the ranges of its operands. */
static struct peal_stretch combine(struct peal_page *page, const struct peal_op *op,
                                   const struct peal_stretch *operands, uint32_t count)
{
    const char *infix = NULL;
    if (count > 1)
        infix = infix_of((enum peal_fn)op->fn);
    bool sum = infix && infix[1] == '+';
    bool same = true; /* all indexed ones have the same index, which is then the result's */
    struct peal_stretch result = {
        .first = operands[0].first, .count = operands[0].count, .size = operands[0].size};
    for (uint32_t i = 0; i < count; i++) {
        if (!operands[i].indexed)
            continue;
        same = same && (!result.indexed || result.index == operands[i].index);
        result.indexed = true;
        result.index = operands[i].index;
    }
    result.indexed = result.indexed && same;
    struct peal_text text = {0};
    if (!infix)
        peal_text_printf(&text, "%s(", peal_fn_info((enum peal_fn)op->fn)->name);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t operand =
            same ? operands[i].text
                 : peal_stretch_text(page, &operands[i], operands[i].count, UINT64_MAX);
        const char *word = "?";
        if (operand)
            word = peal_page_get(page, operand);
        bool wrap = infix && !sum && strchr(word, ' ');
        if (i > 0)
            peal_text_puts(&text, infix ? infix : ", ");
        peal_text_printf(&text, wrap ? "(%s)" : "%s", word);
    }
    peal_text_puts(&text, infix ? "" : ")");
    if (peal_op_is_compute(op) && op->mem.divisor > 1)
        peal_text_printf(&text, " / %u", op->mem.divisor);
    result.text = text.len > LONGEST
                      ? peal_page_printf(page, "%.*s ...", LONGEST - 40, peal_text_get(&text))
                      : peal_page_text(page, peal_text_get(&text));
    peal_text_release(&text);
    return result;
}

void peal_stretches_combine(struct peal_page *page, const struct peal_op *op,
                            struct peal_stretches *operands, uint32_t count,
                            struct peal_stretches *out)
{
    uint64_t total = op->mem.count * op->mem.rows, at = 0;
    struct peal_stretch *parts = calloc(count, sizeof *parts);
    size_t *next = calloc(count, sizeof *next);
    page->failed = page->failed || !parts || !next;
    while (!page->failed && at < total && out->len < PEAL_MAX_STRETCHES) {
        uint64_t end = total;
        for (uint32_t i = 0; i < count; i++) {
            struct peal_stretches *list = &operands[i];
            while (next[i] < list->len && list->at[next[i]].first + list->at[next[i]].count <= at)
                next[i]++;
            parts[i] = next[i] < list->len
                           ? list->at[next[i]]
                           : (struct peal_stretch){.first = at, .count = total - at, .size = 1};
            uint64_t stop = parts[i].first + parts[i].count;
            if (stop < end)
                end = stop;
        }
        for (uint32_t i = 0; i < count; i++)
            parts[i] = peal_stretch_clip(parts[i], at, end, parts[i].size);
        peal_stretches_add(page, out, combine(page, op, parts, count));
        at = end;
    }
    free(parts);
    free(next);
}
