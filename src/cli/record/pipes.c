/* SPDX-License-Identifier: Apache-2.0 */
/* The table of pipes: a text with a row per line.
 *
 *   op NAME PIPE          the pipe that runs an intrinsic; NAME * : all others; NAME.SPACE: if it reads that memory
 *   op NAME PIPE ROLES    an intrinsic that the headers do not have: what it does with each operand (docs/record.md)
 *   notify before|after drains|nothing    whether a notify waits for all pipes
 *   memory SPACE BYTES    core memory
 *   define NAME vec|cube|all    a macro of the device's compiler, for kernels of that unit
 *   # ...                 a comment
 */
#include "cli/record/record.h"

#include <stdio.h>
#include <string.h>

const char *const peal_pipe_names[REC_PIPES] = {"S",    "V",    "M",   "MTE1",
                                                "MTE2", "MTE3", "FIX", "DMA"};
const char *const peal_space_names[REC_SPACES] = {"vec", "mat",  "left",   "right",
                                                  "acc", "bias", "scaling"};

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"

static bool find_word(const char *const *words, int n, const char *word, int *out)
{
    for (int i = 0; i < n; i++) {
        if (strcmp(words[i], word) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static bool read_row(struct pipe_table *t, char word[4][32], int n)
{
    int number;
    if (n == 4 && (strcmp(word[0], "op") != 0 || strspn(word[3], "wratn-|") != strlen(word[3]) ||
                   strspn(word[1], NAME_LETTERS) != strlen(word[1])))
        return false;
    if ((n == 3 || n == 4) && strcmp(word[0], "op") == 0 &&
        find_word(peal_pipe_names, REC_PIPES, word[2], &number)) {
        if (strcmp(word[1], "*") == 0) {
            t->other = (uint8_t)number;
            return true;
        }
        if (t->nrows == sizeof t->rows / sizeof *t->rows)
            return false;
        struct pipe_row *row = &t->rows[t->nrows++];
        memcpy(row->op, word[1], sizeof row->op);
        row->pipe = (uint8_t)number;
        memcpy(row->roles, word[3], sizeof row->roles);
        return true;
    }
    if (n == 3 && strcmp(word[0], "notify") == 0) {
        bool drains = strcmp(word[2], "drains") == 0, before = strcmp(word[1], "before") == 0;
        if ((!drains && strcmp(word[2], "nothing") != 0) ||
            (!before && strcmp(word[1], "after") != 0))
            return false;
        *(before ? &t->drains_before : &t->drains_after) = drains;
        return true;
    }
    static const char *const cores[] = {"vec", "cube", "all"};
    if (n == 3 && strcmp(word[0], "define") == 0 && find_word(cores, 3, word[2], &number) &&
        t->ndefines < sizeof t->defines / sizeof *t->defines &&
        strspn(word[1], NAME_LETTERS) == strlen(word[1])) {
        struct pipe_define *define = &t->defines[t->ndefines++];
        memcpy(define->name, word[1], sizeof define->name);
        define->core = cores[number][0];
        return true;
    }
    if (n == 3 && strcmp(word[0], "memory") == 0 &&
        find_word(peal_space_names, REC_SPACES, word[1], &number))
        return peal_size_parse(word[2], &t->memory[number]) &&
               t->memory[number] <= REC_CORE_STRIDE / 2;
    return false;
}

static bool read_text(const struct peal_cli *cli, const struct peal_source *source,
                      struct pipe_table *out)
{
    uint32_t line = 1;
    *out = (struct pipe_table){.name = source->name, .other = REC_PIPE_V};
    for (size_t i = 0; i < source->len; line++) {
        const char *end = memchr(source->text + i, '\n', source->len - i);
        size_t len = end ? (size_t)(end - source->text) - i : source->len - i;
        char text[128] = "", word[4][32] = {"", "", "", ""}, rest[8] = "";
        memcpy(text, source->text + i, peal_size_min(len, sizeof text - 1));
        text[strcspn(text, "#")] = '\0';
        int n = sscanf(text, "%31s %31s %31s %31s %7s", word[0], word[1], word[2], word[3], rest);
        if (n > 0 && !read_row(out, word, n)) {
            peal_cli_fail(cli, "%s:%u: not a row of a table of pipes", source->name, line);
            return false;
        }
        i += len + 1;
    }
    return true;
}

bool peal_pipes_read(const struct peal_cli *cli, const char *name, struct pipe_table *out)
{
    struct peal_source source;
    struct peal_text built_in = {0};
    peal_text_printf(&built_in, "machines/%s.pipes", name);
    for (size_t i = 0; i < peal_record_text_count; i++) {
        if (strcmp(peal_record_texts[i].name, peal_text_get(&built_in)) == 0) {
            peal_text_release(&built_in);
            return read_text(cli, &peal_record_texts[i], out) && (out->name = name, true);
        }
    }
    peal_text_release(&built_in);
    return peal_cli_read(cli, name, &source) && read_text(cli, &source, out);
}

static const struct pipe_row *find_row(const struct pipe_table *t, const char *op)
{
    for (uint32_t i = t->nrows; i-- > 0;) {
        if (strcmp(t->rows[i].op, op) == 0)
            return &t->rows[i];
    }
    return NULL;
}

uint8_t peal_pipes_find(const struct pipe_table *t, const char *op, uint32_t space)
{
    char special[64];
    snprintf(special, sizeof special, "%s.%s", op, peal_space_names[space]);
    const struct pipe_row *row = find_row(t, special);
    if (!row)
        row = find_row(t, op);
    return row ? row->pipe : t->other;
}
