/* SPDX-License-Identifier: Apache-2.0 */
/* Which kind of file a text is, and what the readers share. */
#include "topology/read/read.h"

#include "topology/read/reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void peal_topology_note(struct peal_topology_reader *r, enum peal_topology_said said,
                        const char *source, const char *format, ...)
{
    enum { MAX_NOTES = 64 };
    struct peal_text text = {0};
    va_list args;
    va_start(args, format);
    peal_text_vprintf(&text, format, args);
    va_end(args);
    bool known = r->notes.len == MAX_NOTES;
    for (size_t i = 0; i < r->notes.len && !known; i++)
        known =
            r->notes.at[i].said == said && strcmp(r->notes.at[i].text, peal_text_get(&text)) == 0;
    if (!known) {
        struct peal_topology_note note = {.said = said, .source = source};
        note.text = peal_arena_copy(&r->graph->arena, peal_text_get(&text), text.len);
        if (!note.text || !peal_vec_push(&r->notes, note))
            peal_topology_failed(r);
    }
    peal_text_release(&text);
}

void peal_topology_failed(struct peal_topology_reader *r)
{
    if (r->graph->status == PEAL_OK)
        r->graph->status = PEAL_NO_MEMORY;
}

uint32_t peal_topology_node(struct peal_topology_reader *r, enum peal_node_kind kind,
                            struct peal_pos pos, const char *format, ...)
{
    char name[PEAL_GRAPH_MAX_NAME + 2];
    va_list args;
    int len = snprintf(name, sizeof name, "%s", r->prefix ? r->prefix : "");
    va_start(args, format);
    vsnprintf(name + len, sizeof name - (size_t)len, format, args);
    va_end(args);
    struct peal_graph_node node = {
        .name = name, .kind = kind, .group = r->group, .ends = kind == PEAL_NODE_PE, .pos = pos};
    return peal_graph_add_node(r->graph, &node);
}

uint32_t peal_topology_fabric(struct peal_topology_reader *r, uint32_t nic)
{
    char name[PEAL_GRAPH_MAX_NAME + 1];
    if (r->rails)
        snprintf(name, sizeof name, "%.40s%u", r->fabric, nic);
    else
        snprintf(name, sizeof name, "%.40s", r->fabric);
    uint32_t found = peal_graph_find(r->graph, name);
    if (found != PEAL_GRAPH_NONE)
        return found;
    struct peal_graph_node node = {
        .name = name, .kind = PEAL_NODE_SWITCH, .group = PEAL_GRAPH_NONE};
    return peal_graph_add_node(r->graph, &node);
}

const struct peal_source *peal_topology_open(struct peal_topology_reader *r, const char *path,
                                             struct peal_pos pos)
{
    struct peal_arena *arena = r->diags ? &r->diags->arena : &r->graph->arena;
    struct peal_text text = {0};
    struct peal_source *source = PEAL_ARENA_NEW(arena, struct peal_source);
    if (!source || !peal_text_read(&text, path, PEAL_TOPOLOGY_MAX_BYTES)) {
        peal_diag_error(r->diags, pos, "cannot read '%s': %s", path, strerror(errno));
        source = NULL;
    } else if (text.len > PEAL_TOPOLOGY_MAX_BYTES) {
        peal_diag_error(r->diags, pos, "'%s' has more than %d bytes", path,
                        PEAL_TOPOLOGY_MAX_BYTES);
        source = NULL;
    } else {
        source->name = peal_arena_copy(arena, path, strlen(path));
        source->text = peal_arena_copy(arena, peal_text_get(&text), text.len);
        source->len = text.len;
        if (!source->name || !source->text)
            source = NULL;
    }
    peal_text_release(&text);
    return source;
}

/* The name of the first element: past comments, declarations and blanks. */
static size_t first_element(const struct peal_source *source, const char **name)
{
    const char *at = source->text, *end = at + source->len;
    while (at < end) {
        at = memchr(at, '<', (size_t)(end - at));
        if (!at || ++at == end)
            break;
        if (*at == '!' && end - at > 2 && at[1] == '-' && at[2] == '-') {
            const char *close = memmem(at, (size_t)(end - at), "-->", 3);
            if (!close)
                break;
            at = close;
        } else if (*at != '?' && *at != '!') {
            *name = at;
            size_t len = 0;
            while (at + len < end && !strchr(" \t\r\n/>", at[len]))
                len++;
            return len;
        }
    }
    return 0;
}

static enum peal_status read_xml(struct peal_topology_reader *r)
{
    const char *name = "";
    size_t len = first_element(r->source, &name);
    if (len == 8 && memcmp(name, "topology", 8) == 0)
        return peal_hwloc_read(r);
    return peal_nccl_read(r);
}

/* Is it a key of the text's: at the beginning of a line, or in quotes? Blanks may precede it. */
static bool has_key(const struct peal_source *source, const char *key)
{
    size_t len = strlen(key);
    const char *end = source->text + source->len, *at = source->text;
    while ((at = memmem(at, (size_t)(end - at), key, len))) {
        const char *before = at, *after = at + len;
        if (before > source->text && (before[-1] == '"' || before[-1] == '\''))
            before--;
        while (before > source->text && strchr(" \t{,", before[-1]))
            before--;
        while (after < end && strchr(" \t\"'", *after))
            after++;
        if ((before == source->text || before[-1] == '\n') && after < end && *after == ':')
            return true;
        at += len;
    }
    return false;
}

enum peal_status peal_topology_read_one(struct peal_topology_reader *r)
{
    const struct peal_source *source = r->source;
    size_t i = 0;
    if (source->len >= 3 && memcmp(source->text, "\xef\xbb\xbf", 3) == 0)
        i = 3;
    while (i < source->len && strchr(" \t\r\n", source->text[i]))
        i++;
    if (i < source->len && source->text[i] == '<')
        return read_xml(r);
    if (has_key(source, "npus_count"))
        return peal_astra_read(r);
    if (has_key(source, "instances") && has_key(source, "devices"))
        return peal_infragraph_read(r);
    return PEAL_OK;
}

/* The notes, for the caller. */
static bool keep_notes(struct peal_topology_reader *r, struct peal_topology *out)
{
    struct peal_topology_note *notes =
        peal_arena_alloc(&r->graph->arena, r->notes.len * sizeof *notes);
    if (!notes)
        return false;
    if (r->notes.len)
        memcpy(notes, r->notes.at, r->notes.len * sizeof *notes);
    out->notes = notes;
    out->nnotes = (uint32_t)r->notes.len;
    out->format = r->format;
    return true;
}

static uint32_t find_root(uint32_t *parent, uint32_t node)
{
    for (; parent[node] != node; node = parent[node])
        parent[node] = parent[parent[node]];
    return node;
}

/* Of a link between a PE and something else: that, and the PE. False: another link. */
static bool split_link(const struct peal_graph *graph, const struct peal_graph_link *link,
                       uint32_t *pe, uint32_t *other)
{
    bool from = graph->nodes.at[link->from].kind == PEAL_NODE_PE;
    bool to = graph->nodes.at[link->to].kind == PEAL_NODE_PE;
    *pe = from ? link->from : link->to;
    *other = from ? link->to : link->from;
    return from != to;
}

/* How many PEs have a link into the part of the machine with that root. */
static uint32_t count_part(const struct peal_graph *graph, uint32_t *parent, bool *seen,
                           uint32_t root)
{
    uint32_t count = 0, pe, other;
    memset(seen, 0, graph->nodes.len);
    for (size_t i = 0; i < graph->links.len; i++) {
        if (!split_link(graph, &graph->links.at[i], &pe, &other) || seen[pe] ||
            find_root(parent, other) != root)
            continue;
        seen[pe] = true;
        count++;
    }
    return count;
}

/* Do all PEs have links into one part of the machine that other nodes make up? Then every one reaches every
 * other one without a PE between them. */
static bool is_joined(const struct peal_graph *graph, uint32_t *parent, bool *seen)
{
    uint32_t first = PEAL_GRAPH_NONE, pe, other;
    for (uint32_t n = 0; n < graph->nodes.len; n++)
        parent[n] = n;
    for (size_t i = 0; i < graph->links.len; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        if (graph->nodes.at[link->from].kind != PEAL_NODE_PE &&
            graph->nodes.at[link->to].kind != PEAL_NODE_PE)
            parent[find_root(parent, link->from)] = find_root(parent, link->to);
    }
    for (uint32_t n = 0; n < graph->nodes.len && first == PEAL_GRAPH_NONE; n++)
        first = graph->nodes.at[n].kind == PEAL_NODE_PE ? n : first;
    for (size_t i = 0; i < graph->links.len; i++) {
        if (split_link(graph, &graph->links.at[i], &pe, &other) && pe == first &&
            count_part(graph, parent, seen, find_root(parent, other)) == graph->pes)
            return true;
    }
    return graph->pes < 2;
}

/* A GPU passes nothing on, unless that is the only way. */
static void let_pass(struct peal_topology_reader *r)
{
    struct peal_graph *graph = r->graph;
    uint32_t *parent = malloc((graph->nodes.len + 1) * sizeof *parent);
    bool *seen = malloc(graph->nodes.len + 1), ends = false;
    for (size_t i = 0; i < graph->nodes.len; i++)
        ends |= graph->nodes.at[i].kind == PEAL_NODE_PE && graph->nodes.at[i].ends;
    if (!parent || !seen) {
        peal_topology_failed(r);
    } else if (ends && !is_joined(graph, parent, seen)) {
        for (size_t i = 0; i < graph->nodes.len; i++)
            graph->nodes.at[i].ends = graph->nodes.at[i].kind == PEAL_NODE_MEMORY;
        peal_topology_note(r, PEAL_TOPOLOGY_ASSUMED, "not all of them are joined otherwise",
                           "PEs pass on messages that are for others");
    }
    free(parent);
    free(seen);
}

enum peal_status peal_topology_read(const struct peal_source *source, struct peal_diags *diags,
                                    struct peal_topology *out)
{
    struct peal_topology_reader r = {.source = source, .diags = diags, .group = PEAL_GRAPH_NONE};
    *out = (struct peal_topology){0};
    r.graph = peal_graph_new(diags);
    if (!r.graph)
        return PEAL_NO_MEMORY;
    enum peal_status status =
        has_key(source, "files") ? peal_several_read(&r) : peal_topology_read_one(&r);
    bool known = r.graph->nodes.len > 0 || r.graph->status != PEAL_OK;
    if (status == PEAL_OK && known)
        let_pass(&r);
    if (status == PEAL_OK && known)
        status = peal_graph_finish(r.graph);
    if (status == PEAL_OK && known && !keep_notes(&r, out))
        status = PEAL_NO_MEMORY;
    if (status == PEAL_OK && known)
        out->graph = r.graph;
    else
        peal_graph_free(r.graph);
    peal_vec_release(&r.notes);
    return status;
}
