/* SPDX-License-Identifier: Apache-2.0 */
/* Several files, each a node of the machine, joined by a fabric:
 *
 *   files: [h100.xml*4, mi300x.xml]     # relative to this file, or to the current folder
 *   fabric: ib                          # the switch that all NICs are joined to
 *   rails: true                         # ib0 for the first NIC of each file, ib1 for the second, ...
 */
#include "topology/read/reader.h"
#include "topology/read/tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FILES = 4096 };

/* The path beside the file that names it, if there is one. */
static const char *find_file(struct peal_topology_reader *r, const char *path)
{
    const char *slash = strrchr(r->source->name, '/');
    struct peal_text text = {0};
    const char *found = path;
    if (slash && *path != '/') {
        peal_text_add(&text, r->source->name, (size_t)(slash - r->source->name) + 1);
        peal_text_puts(&text, path);
        if (access(peal_text_get(&text), R_OK) == 0)
            found = peal_arena_copy(&r->graph->arena, peal_text_get(&text), text.len);
    }
    peal_text_release(&text);
    return found;
}

/* One file, as the machine's node of that number. */
static enum peal_status read_node(struct peal_topology_reader *r, const struct peal_source *file,
                                  uint32_t number)
{
    struct peal_topology_reader one = *r;
    char prefix[24], name[24];
    size_t before = r->graph->nodes.len;
    snprintf(name, sizeof name, "node%u", number);
    snprintf(prefix, sizeof prefix, "node%u.", number);
    one.source = file;
    one.prefix = prefix;
    one.group = peal_graph_add_group(r->graph, PEAL_GRAPH_NONE, "node", name);
    if (one.group == PEAL_GRAPH_NONE)
        return r->graph->status;
    enum peal_status status = peal_topology_read_one(&one);
    r->notes = one.notes;
    r->format = one.format;
    if (status == PEAL_OK && r->graph->status == PEAL_OK && r->graph->nodes.len == before) {
        peal_diag_error(r->diags, (struct peal_pos){.source = file, .line = 1, .col = 1},
                        "not a description of a machine that can be a node of another");
        return PEAL_INVALID;
    }
    return status;
}

/* "h100.xml*4": how often, without that part of the text. */
static char *split(struct peal_topology_reader *r, struct peal_tree *yaml, const yaml_node_t *item,
                   uint32_t *count)
{
    const char *text = peal_tree_text(item);
    char *end, *star, *path = text ? peal_arena_copy(&r->graph->arena, text, strlen(text)) : NULL;
    *count = 1;
    if (!path || !*path) {
        peal_tree_refuse(yaml, item, "a file's name is wanted here");
        return NULL;
    }
    star = strrchr(path, '*');
    if (!star)
        return path;
    long value = strtol(star + 1, &end, 10);
    if (end == star + 1 || *end || value < 1 || value > MAX_FILES) {
        peal_tree_refuse(yaml, item, "FILE*N: from 1 to %d times, not '%.40s'", MAX_FILES,
                         star + 1);
        return NULL;
    }
    *star = 0;
    *count = (uint32_t)value;
    return path;
}

static enum peal_status read_files(struct peal_topology_reader *r, struct peal_tree *yaml,
                                   const yaml_node_t *files)
{
    enum peal_status status = PEAL_OK;
    uint32_t number = 0, count;
    if (peal_tree_count(files) == 0)
        peal_tree_refuse(yaml, files, "'files' is a list of one or more");
    for (size_t i = 0; i < peal_tree_count(files) && status == PEAL_OK && !yaml->failed; i++) {
        const yaml_node_t *item = peal_tree_item(yaml, files, i);
        char *path = split(r, yaml, item, &count);
        const struct peal_source *file =
            path ? peal_topology_open(r, find_file(r, path), peal_tree_pos(yaml, item)) : NULL;
        if (!file)
            return PEAL_INVALID;
        for (uint32_t n = 0; n < count && status == PEAL_OK; n++) {
            if (number == MAX_FILES)
                peal_tree_refuse(yaml, item, "more than %d nodes", MAX_FILES);
            status = yaml->failed ? PEAL_INVALID : read_node(r, file, number++);
        }
    }
    return yaml->failed ? PEAL_INVALID : status;
}

enum peal_status peal_several_read(struct peal_topology_reader *r)
{
    struct peal_tree yaml;
    enum peal_status status = PEAL_INVALID;
    if (!peal_tree_open(&yaml, r->source, r->diags))
        goto close;
    const yaml_node_t *root = peal_tree_root(&yaml), *files = peal_tree_find(&yaml, root, "files");
    const char *fabric = peal_tree_text(peal_tree_find(&yaml, root, "fabric"));
    const char *rails = peal_tree_text(peal_tree_find(&yaml, root, "rails"));
    if (!files) {
        peal_tree_refuse(&yaml, root, "no list 'files' at the top");
        goto close;
    }
    fabric = fabric && *fabric ? fabric : "fabric";
    r->fabric = peal_arena_copy(&r->graph->arena, fabric, strlen(fabric));
    r->rails = rails && strcmp(rails, "true") == 0;
    status = r->fabric ? read_files(r, &yaml, files) : PEAL_NO_MEMORY;
close:
    peal_tree_close(&yaml);
    return status;
}

static bool is_count(const char *text, size_t len)
{
    size_t digits = 0;
    while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9')
        digits++;
    return digits > 0 && digits < len && text[len - 1 - digits] == '*';
}

bool peal_topology_list(const char *path, struct peal_text *out)
{
    struct peal_text options = {0};
    if ((!strchr(path, ',') && !is_count(path, strlen(path))) || access(path, F_OK) == 0)
        return false;
    peal_text_puts(out, "files: [");
    for (const char *at = path; *at; at += strcspn(at, ",")) {
        at += *at == ',';
        int len = (int)strcspn(at, ",");
        if (strncmp(at, "rails=", 6) == 0)
            peal_text_printf(&options, "fabric: '%.*s'\nrails: true\n", len - 6, at + 6);
        else if (strncmp(at, "fabric=", 7) == 0)
            peal_text_printf(&options, "fabric: '%.*s'\n", len - 7, at + 7);
        else if (len > 0)
            peal_text_printf(out, "'%.*s', ", len, at);
    }
    peal_text_printf(out, "]\n%s", peal_text_get(&options));
    peal_text_release(&options);
    return true;
}
