/* SPDX-License-Identifier: Apache-2.0 */
/* peal exec --hosts: the list of hosts, and the command that reaches one of them. */
#include "cli/run/hosts.h"

#include <peal/peal.h>
#include <stdlib.h>
#include <string.h>

bool peal_hosts_parse(const char *text, struct peal_arena *arena, struct peal_hosts_list *out,
                      struct peal_text *error)
{
    uint32_t capacity = 1;
    for (const char *at = text; *at; at++)
        capacity += *at == ',';
    *out = (struct peal_hosts_list){.at = peal_arena_alloc(arena, capacity * sizeof *out->at)};
    while (out->at && *text) {
        struct peal_hosts_entry *entry = &out->at[out->count];
        size_t len = strcspn(text, ","), name = len;
        unsigned long count = 1;
        const char *colon = memrchr(text, ':', len);
        if (colon) {
            char *end;
            name = (size_t)(colon - text);
            count = strtoul(colon + 1, &end, 10);
            if (end != text + len || end == colon + 1 || count == 0)
                name = 0;
        }
        if (name == 0 || name >= sizeof entry->name || text[0] == '-' ||
            count > PEAL_MOST_RANKS - out->ranks) {
            peal_text_printf(
                error,
                "'%.*s' is not a host and a number of ranks, as in a:2,b:2 (at most %d ranks)",
                (int)len, text, PEAL_MOST_RANKS);
            return false;
        }
        memcpy(entry->name, text, name);
        entry->first = out->ranks;
        entry->count = (uint32_t)count;
        out->ranks += entry->count;
        out->count++;
        text += len;
        if (*text == ',' && text[1] == '\0') {
            peal_text_puts(error, "the list of hosts ends with a comma");
            return false;
        }
        text += *text == ',';
    }
    if (out->count == 0)
        peal_text_puts(error, "no hosts are given");
    return out->count > 0;
}

/* A word with each {host} replaced. */
static char *replace_host(const char *word, size_t len, const char *host, struct peal_arena *arena)
{
    struct peal_text text = {0};
    for (size_t i = 0; i < len;) {
        if (len - i >= 6 && strncmp(word + i, "{host}", 6) == 0) {
            peal_text_puts(&text, host);
            i += 6;
        } else {
            peal_text_add(&text, word + i++, 1);
        }
    }
    char *copy = peal_arena_copy(arena, peal_text_get(&text), text.len);
    peal_text_release(&text);
    return copy;
}

/* Quotes a word for a remote shell. */
static char *quote(const char *word, struct peal_arena *arena)
{
    struct peal_text text = {0};
    peal_text_puts(&text, "'");
    for (const char *at = word; *at; at++) {
        if (*at == '\'')
            peal_text_puts(&text, "'\\''");
        else
            peal_text_add(&text, at, 1);
    }
    peal_text_puts(&text, "' exec --agent");
    char *copy = peal_arena_copy(arena, peal_text_get(&text), text.len);
    peal_text_release(&text);
    return copy;
}

char **peal_hosts_command(const char *via, const char *host, const char *self,
                          struct peal_arena *arena)
{
    size_t capacity = 8 + (via ? strlen(via) : 0), count = 0;
    char **args = peal_arena_alloc(arena, capacity * sizeof *args);
    if (!args)
        return NULL;
    if (!via) {
        static const char *const ssh[] = {"ssh", "-o", "BatchMode=yes", "--"};
        for (size_t i = 0; i < 4; i++)
            args[count++] = (char *)(uintptr_t)ssh[i];
        args[count++] = replace_host("{host}", 6, host, arena);
        args[count++] = quote(self, arena);
        return args;
    }
    while (*via) {
        size_t len = strcspn(via, " ");
        if (len > 0)
            args[count++] = replace_host(via, len, host, arena);
        via += len;
        via += *via == ' ';
    }
    args[count++] = (char *)(uintptr_t)self;
    args[count++] = (char *)(uintptr_t) "exec";
    args[count++] = (char *)(uintptr_t) "--agent";
    return args;
}
