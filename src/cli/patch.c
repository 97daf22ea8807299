/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/patch.h"

#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t next_line(const struct peal_source *s, size_t at)
{
    const char *end = memchr(s->text + at, '\n', s->len - at);
    return end ? (size_t)(end - s->text) + 1 : s->len;
}

/* Where each line begins, and the end. */
static size_t *split(const struct peal_source *s, size_t *count)
{
    PEAL_VEC(size_t) lines = {0};
    *count = 0;
    for (size_t at = 0; at < s->len; at = next_line(s, at))
        (void)peal_vec_push(&lines, at);
    *count = lines.len;
    (void)peal_vec_push(&lines, s->len);
    return lines.at;
}

static void put_lines(struct peal_text *out, char sign, const struct peal_source *s,
                      const size_t *lines, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        peal_text_printf(out, "%c", sign);
        peal_text_add(out, s->text + lines[i], lines[i + 1] - lines[i]);
        if (lines[i + 1] && s->text[lines[i + 1] - 1] != '\n')
            peal_text_puts(out, "\n\\ No newline at end of file\n");
    }
}

/* " -7,2": two lines from the seventh on; " -7": one; " -7,0": none, behind the seventh. */
static void put_range(struct peal_text *out, char sign, size_t before, size_t count)
{
    if (count == 1)
        peal_text_printf(out, " %c%zu", sign, before + 1);
    else
        peal_text_printf(out, " %c%zu,%zu", sign, count ? before + 1 : before, count);
}

static bool same_line(const struct peal_source *a, const size_t *x, const struct peal_source *b,
                      const size_t *y)
{
    return x[1] - x[0] == y[1] - y[0] && memcmp(a->text + x[0], b->text + y[0], x[1] - x[0]) == 0;
}

void peal_patch_print(const char *path, const struct peal_source *before,
                      const struct peal_source *after, struct peal_text *out)
{
    enum { AHEAD = 64 }; /* lines that one change may put in or take out */
    size_t n = 0, m = 0, i = 0, k = 0;
    size_t *x = split(before, &n), *y = split(after, &m);
    peal_text_printf(out, "--- %s\n+++ %s\n", path, path);
    while (x && y && (i < n || k < m)) {
        if (i < n && k < m && same_line(before, x + i, after, y + k)) {
            i++, k++;
            continue;
        }
        /* The nearest pair of equal lines behind this one. */
        size_t a = n - i, b = m - k;
        for (size_t sum = 1; sum <= AHEAD && a == n - i && b == m - k; sum++) {
            for (size_t p = 0; p <= sum; p++) {
                if (i + p < n && k + sum - p < m &&
                    same_line(before, x + i + p, after, y + k + sum - p)) {
                    a = p;
                    b = sum - p;
                    break;
                }
            }
        }
        peal_text_puts(out, "@@");
        put_range(out, '-', i, a);
        put_range(out, '+', k, b);
        peal_text_puts(out, " @@\n");
        put_lines(out, '-', before, x, i, i + a);
        put_lines(out, '+', after, y, k, k + b);
        i += a;
        k += b;
    }
    free(x);
    free(y);
}

bool peal_patch_replace(const char *path, const char *text, size_t len, const char *done,
                        struct peal_text *said)
{
    struct peal_text backup = {0};
    peal_text_printf(&backup, "%s.orig", path);
    bool good = !backup.failed && peal_cli_replace(path, text, len, peal_text_get(&backup));
    if (good)
        peal_text_printf(said, "%s: %s; the file as it was is %s", path, done,
                         peal_text_get(&backup));
    else
        peal_text_printf(said, "%s: not changed: %s%s", path, strerror(errno),
                         errno == EEXIST ? " (its backup .orig is there already)" : "");
    peal_text_release(&backup);
    return good;
}
