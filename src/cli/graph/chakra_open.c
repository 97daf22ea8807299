/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/graph/chakra.h"

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_PATH = 4096, UNPACK_MS = 60000 };

static bool ends_in(const char *path, const char *end)
{
    size_t len = strlen(path), tail = strlen(end);
    return len > tail && strcmp(path + len - tail, end) == 0;
}

bool peal_chakra_names(const char *path)
{
    return ends_in(path, ".et") || ends_in(path, ".et.gz");
}

/* A file's text, unpacked by gzip if it is packed. */
static bool read_file(const struct peal_cli *cli, const char *path, struct peal_source *out)
{
    struct peal_text text = {0};
    const char *const argv[] = {"gzip", "-dc", path, NULL};
    struct peal_child child = {.argv = argv, .input = -1, .limit_ms = UNPACK_MS};
    if (!peal_cli_read(cli, path, out))
        return false;
    if (out->len < 2 || memcmp(out->text, "\x1f\x8b", 2) != 0)
        return true;
    if (peal_child_output(&child, &text) != PEAL_OK || text.failed ||
        text.len > PEAL_CHAKRA_MAX_BYTES) {
        peal_text_release(&text);
        peal_cli_fail(cli, "%s: gzip could not unpack it", path);
        return false;
    }
    out->text = peal_arena_copy(cli->arena, peal_text_get(&text), text.len);
    out->len = text.len;
    peal_text_release(&text);
    return out->text != NULL;
}

/* "all_reduce.3.et": the number in it, whose neighbours are other ranks. False: it has none. */
static bool find_number(const char *path, size_t *first, size_t *len)
{
    size_t end = strlen(path) - (ends_in(path, ".et.gz") ? 6 : 3);
    *first = end;
    while (*first > 0 && path[*first - 1] >= '0' && path[*first - 1] <= '9')
        --*first;
    *len = end - *first;
    return *len > 0 && *len < 6 && *first > 0 && strchr("._-", path[*first - 1]);
}

/* All ranks' files, from 0 on. */
static enum peal_status read_ranks(const struct peal_cli *cli, const char *path,
                                   struct peal_chakra *trace, struct peal_diags *diags)
{
    size_t first = 0, len = 0;
    bool numbered = find_number(path, &first, &len);
    enum peal_status status = PEAL_OK;
    char name[MAX_PATH];
    for (uint32_t rank = 0; status == PEAL_OK && rank < PEAL_CHAKRA_MAX_RANKS; rank++) {
        struct peal_source source;
        if (numbered)
            snprintf(name, sizeof name, "%.*s%u%s", (int)first, path, rank, path + first + len);
        else
            snprintf(name, sizeof name, "%s", path);
        if (rank > 0 && (!numbered || access(name, F_OK) != 0))
            break;
        if (!read_file(cli, name, &source))
            return PEAL_SYSTEM;
        status = peal_chakra_add(trace, &source, diags);
    }
    return status;
}

/* A line of notes at a time. */
static void print_notes(const struct peal_cli *cli, const struct peal_text *notes)
{
    for (const char *at = peal_text_get(notes); *at; at += strcspn(at, "\n") + 1)
        peal_cli_note(cli, "%.*s", (int)strcspn(at, "\n"), at);
}

bool peal_chakra_open(const struct peal_cli *cli, const char *path, struct peal_source *out)
{
    struct peal_chakra trace;
    struct peal_diags diags;
    struct peal_text text = {0}, notes = {0};
    peal_chakra_init(&trace);
    peal_diags_init(&diags);
    enum peal_status status = read_ranks(cli, path, &trace, &diags);
    if (status == PEAL_OK)
        status = peal_chakra_graph(&trace, &diags, &text, &notes);
    *out = (struct peal_source){.name = path};
    if (status == PEAL_OK) {
        print_notes(cli, &notes);
        out->text = peal_arena_copy(cli->arena, peal_text_get(&text), text.len);
        out->len = text.len;
    } else if (status != PEAL_SYSTEM) {
        peal_cli_diags(cli, status, &diags);
    }
    peal_text_release(&text);
    peal_text_release(&notes);
    peal_diags_release(&diags);
    peal_chakra_release(&trace);
    return status == PEAL_OK && out->text;
}
