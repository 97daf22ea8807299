/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs in machine files: what is below `topology` beside its keys.
 *
 *   levels   generators, from the inside out        {star: 8, name: gpu, link: {...}}
 *   nodes    named nodes                            {name: gpu0, kind: pe}
 *   links    between them                           {from: gpu0, to: switch0, bw_GBps: 20, lat_ns: 300}
 *   without  links that are missing                 [gpu0, gpu1]
 *   ways     routes that are given                  [gpu0, switch0, gpu1]
 *
 * Every mapping is read by a table of its fields.
 */
#include "sim/machine/machine_yaml.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct graph_reader {
    const struct peal_yaml *y;
    struct peal_graph *graph;
};

struct peal_pos peal_yaml_pos(const struct peal_yaml *y, const yaml_node_t *node)
{
    size_t len = 1;
    if (node->start_mark.line == node->end_mark.line &&
        node->end_mark.index > node->start_mark.index)
        len = node->end_mark.index - node->start_mark.index;
    return (struct peal_pos){.source = y->source,
                             .line = (uint32_t)node->start_mark.line + 1,
                             .col = (uint32_t)node->start_mark.column + 1,
                             .len = (uint32_t)len};
}

const char *peal_yaml_text(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return NULL;
    return text;
}

const yaml_node_t **peal_yaml_graph_part(struct peal_yaml_graph *parts, const char *name)
{
    const struct {
        const char *name;
        const yaml_node_t **part;
    } list[] = {{"levels", &parts->levels},
                {"nodes", &parts->nodes},
                {"links", &parts->links},
                {"without", &parts->without},
                {"ways", &parts->ways}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (strcmp(list[i].name, name) == 0)
            return list[i].part;
    }
    return NULL;
}

/* Fields of a mapping. */

enum field_kind {
    FIELD_TEXT,
    FIELD_COUNT,
    FIELD_RATE,
    FIELD_NS,
    FIELD_BOOL,
    FIELD_WORD,
    FIELD_NODE
};

struct yaml_field {
    const char *name;
    enum field_kind kind;
    void *out; /* const char *, uint32_t, peal_rate, uint64_t, bool, int, const yaml_node_t * */
    const char *words;
    bool needed;
};

static void refuse(struct graph_reader *g, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(struct graph_reader *g, const yaml_node_t *node, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    peal_graph_refuse(g->graph, peal_yaml_pos(g->y, node), "%s", text);
}

static bool is_good(const struct graph_reader *g)
{
    return g->graph->status == PEAL_OK;
}

/* 1 to 65536. */
static bool read_count(struct graph_reader *g, const yaml_node_t *node, const char *name,
                       uint32_t *out)
{
    const char *text = peal_yaml_text(node);
    uint64_t value = 0;
    bool good = text && *text;
    for (; good && *text; text++) {
        good = isdigit((unsigned char)*text) && value <= PEAL_MACHINE_MAX_PES;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    if (good && value >= 1 && value <= PEAL_MACHINE_MAX_PES)
        *out = (uint32_t)value;
    else
        refuse(g, node, "'%s' takes a number from 1 to %d", name, PEAL_MACHINE_MAX_PES);
    return is_good(g);
}

static int find_word(const char *words, const char *text)
{
    size_t len = strlen(text);
    for (int i = 0; *words; i++) {
        size_t n = strcspn(words, "|");
        if (n == len && strncmp(words, text, n) == 0)
            return i;
        words += n + (words[n] == '|');
    }
    return -1;
}

static void read_field(struct graph_reader *g, const struct yaml_field *field,
                       const yaml_node_t *node)
{
    const char *text = peal_yaml_text(node), *why = NULL;
    int word;
    if (field->kind == FIELD_NODE) {
        *(const yaml_node_t **)field->out = node;
        return;
    }
    if (!text || !*text) {
        refuse(g, node, "'%s' takes one value", field->name);
        return;
    }
    switch (field->kind) {
    case FIELD_TEXT:
        *(const char **)field->out = text;
        break;
    case FIELD_COUNT:
        read_count(g, node, field->name, field->out);
        break;
    case FIELD_RATE:
        if (!peal_rate_parse(text, field->out, &why))
            refuse(g, node, "'%s': '%s' %s", field->name, text, why);
        break;
    case FIELD_NS:
        if (!peal_time_parse_ns(text, field->out, &why))
            refuse(g, node, "'%s': '%s' %s", field->name, text, why);
        break;
    case FIELD_BOOL:
    case FIELD_WORD:
        word = find_word(field->kind == FIELD_BOOL ? "false|true" : field->words, text);
        if (word < 0)
            refuse(g, node, "'%s' is %s, not '%s'", field->name,
                   field->kind == FIELD_BOOL ? "true or false" : field->words, text);
        else if (field->kind == FIELD_BOOL)
            *(bool *)field->out = word;
        else
            *(int *)field->out = word;
        break;
    case FIELD_NODE:
        break;
    }
}

static void unknown(struct graph_reader *g, const yaml_node_t *node, const char *name,
                    const struct yaml_field *fields, size_t count)
{
    struct peal_text names = {0};
    for (size_t i = 0; i < count; i++)
        peal_text_printf(&names, "%s%s", i ? ", " : "", fields[i].name);
    refuse(g, node, "unknown key '%s'", name);
    peal_diag_note(g->y->diags, (struct peal_pos){0}, "known here: %s", peal_text_get(&names));
    peal_text_release(&names);
}

static bool read_fields(struct graph_reader *g, const yaml_node_t *map,
                        const struct yaml_field *fields, size_t count)
{
    uint32_t seen = 0;
    assert(count <= 32);
    if (map->type != YAML_MAPPING_NODE) {
        refuse(g, map, "expected {%s: ...}", fields[0].name);
        return false;
    }
    const yaml_node_pair_t *pair = map->data.mapping.pairs.start;
    for (; pair < map->data.mapping.pairs.top && is_good(g); pair++) {
        const yaml_node_t *key = yaml_document_get_node(g->y->document, pair->key);
        const char *name = peal_yaml_text(key);
        size_t i = 0;
        while (name && i < count && strcmp(fields[i].name, name) != 0)
            i++;
        if (!name) {
            refuse(g, key, "a key must be a plain name");
        } else if (i == count) {
            unknown(g, key, name, fields, count);
        } else if (seen & UINT32_C(1) << i) {
            refuse(g, key, "'%s' is given twice", name);
        } else {
            seen |= UINT32_C(1) << i;
            read_field(g, &fields[i], yaml_document_get_node(g->y->document, pair->value));
        }
    }
    for (size_t i = 0; i < count && is_good(g); i++) {
        if (fields[i].needed && !(seen & UINT32_C(1) << i))
            refuse(g, map, "missing key '%s'", fields[i].name);
    }
    return is_good(g);
}

#define READ_FIELDS(g, map, fields) read_fields(g, map, fields, sizeof(fields) / sizeof *(fields))

/* The elements of a list; another node is a list of one. */
static size_t count_items(const yaml_node_t *list)
{
    if (list->type != YAML_SEQUENCE_NODE)
        return 1;
    return (size_t)(list->data.sequence.items.top - list->data.sequence.items.start);
}

static const yaml_node_t *item_of(const struct graph_reader *g, const yaml_node_t *list, size_t i)
{
    if (list->type != YAML_SEQUENCE_NODE)
        return list;
    return yaml_document_get_node(g->y->document, list->data.sequence.items.start[i]);
}

/* Levels. */

static const char modes[] = "default|cut-through|store-and-forward";
static const char makers[] = "mesh|torus|full|ring|star|rails|fat_tree|dragonfly";

static void read_link(struct graph_reader *g, const yaml_node_t *map, struct peal_graph_link *link,
                      uint64_t *pass)
{
    int mode = 0;
    *link =
        (struct peal_graph_link){.lanes = 1, .kind = link->kind, .pos = peal_yaml_pos(g->y, map)};
    const struct yaml_field fields[] = {
        {"bw_GBps", FIELD_RATE, &link->rate, NULL, true},
        {"lat_ns", FIELD_NS, &link->lat, NULL, false},
        {"lanes", FIELD_COUNT, &link->lanes, NULL, false},
        {"mode", FIELD_WORD, &mode, modes, false},
        {"kind", FIELD_TEXT, &link->kind, NULL, false},
        {"pass_ns", FIELD_NS, pass, NULL, false},
    };
    read_fields(g, map, fields, sizeof fields / sizeof *fields - (pass == NULL));
    link->mode = (enum peal_graph_mode)mode;
}

static void read_hub(struct graph_reader *g, const yaml_node_t *map, struct peal_graph_node *hub)
{
    const struct yaml_field fields[] = {
        {"name", FIELD_TEXT, &hub->name, NULL, false},
        {"lat_ns", FIELD_NS, &hub->lat, NULL, false},
        {"reduces", FIELD_BOOL, &hub->reduces, NULL, false},
        {"multicasts", FIELD_BOOL, &hub->multicasts, NULL, false},
    };
    READ_FIELDS(g, map, fields);
}

/* The number after a generator's name, or its list. */
static void read_shape(struct graph_reader *g, const char *name, const yaml_node_t *node,
                       struct peal_make_level *level, uint32_t *sizes)
{
    bool has_dims = level->kind == PEAL_MAKE_MESH || level->kind == PEAL_MAKE_TORUS ||
                    level->kind == PEAL_MAKE_DRAGONFLY;
    size_t count = count_items(node);
    uint64_t all = 1;
    if (count == 0 || count > (has_dims ? PEAL_GRAPH_MAX_DIMS : PEAL_MAKE_MAX_SIZES) ||
        (level->kind == PEAL_MAKE_DRAGONFLY && count != 3)) {
        refuse(g, node, "'%s' takes %s", name,
               level->kind == PEAL_MAKE_DRAGONFLY
                   ? "three numbers: ends of a router, routers of a group, groups"
               : has_dims ? "1 to 4 numbers"
                          : "a number, or a list of at most 4096");
        return;
    }
    for (size_t i = 0; i < count && read_count(g, item_of(g, node, i), name, &sizes[i]); i++)
        all = peal_size_mul_capped(all, sizes[i]);
    if (has_dims) {
        level->ndims = (uint32_t)count;
        memcpy(level->dims, sizes, count * sizeof *sizes);
        level->count = (uint32_t)all;
        if (is_good(g) && all > PEAL_MACHINE_MAX_PES)
            refuse(g, node, "'%s' has more than %d members", name, PEAL_MACHINE_MAX_PES);
    } else if (node->type == YAML_SEQUENCE_NODE) {
        level->sizes = sizes;
        level->nsizes = (uint32_t)count;
    } else {
        level->count = sizes[0];
    }
}

/* Which of the generators a level has: its shape. `switch` is a generator if it is a number. */
static const yaml_node_t *find_maker(struct graph_reader *g, const yaml_node_t *map,
                                     const yaml_node_t *const *shapes, const yaml_node_t **hub,
                                     int *kind)
{
    const yaml_node_t *found = NULL;
    for (int i = 0; i < 8; i++) {
        if (shapes[i] && found)
            refuse(g, map, "a level has one generator, not two");
        if (shapes[i])
            *kind = i;
        if (shapes[i])
            found = shapes[i];
    }
    if (*hub && (*hub)->type != YAML_MAPPING_NODE) {
        if (found)
            refuse(g, map, "a level has one generator, not two");
        *kind = PEAL_MAKE_STAR;
        found = *hub;
        *hub = NULL;
    }
    if (!found)
        refuse(g, map, "a level needs a generator: %s", makers);
    return found;
}

static void default_via(const struct peal_make_level *levels, uint32_t i, int via,
                        struct peal_make_level *level)
{
    bool below_has_hubs = i > 0 && levels[i - 1].kind >= PEAL_MAKE_STAR;
    if (via >= 0)
        level->via = (enum peal_make_via)via;
    else if (level->kind == PEAL_MAKE_RAILS)
        level->via = PEAL_MAKE_VIA_EACH;
    else
        level->via = below_has_hubs ? PEAL_MAKE_VIA_SWITCH : PEAL_MAKE_VIA_FIRST;
}

static void read_level(struct graph_reader *g, const yaml_node_t *map,
                       struct peal_make_level *levels, uint32_t i, uint32_t *sizes)
{
    struct peal_make_level *level = &levels[i];
    const yaml_node_t *shapes[8] = {NULL}, *link = NULL, *nic = NULL, *hub = NULL, *global = NULL;
    static const char *const default_names[] = {"pe", "node", "rack", "row"};
    int via = -1, kind = 0;
    *level = (struct peal_make_level){
        .name = i < 4 ? default_names[i] : "part", .taper = 1, .pos = peal_yaml_pos(g->y, map)};
    const struct yaml_field fields[] = {
        {"mesh", FIELD_NODE, &shapes[0], NULL, false},
        {"torus", FIELD_NODE, &shapes[1], NULL, false},
        {"full", FIELD_NODE, &shapes[2], NULL, false},
        {"ring", FIELD_NODE, &shapes[3], NULL, false},
        {"star", FIELD_NODE, &shapes[4], NULL, false},
        {"rails", FIELD_NODE, &shapes[5], NULL, false},
        {"fat_tree", FIELD_NODE, &shapes[6], NULL, false},
        {"dragonfly", FIELD_NODE, &shapes[7], NULL, false},
        {"switch", FIELD_NODE, &hub, NULL, false},
        {"name", FIELD_TEXT, &level->name, NULL, false},
        {"arity", FIELD_COUNT, &level->arity, NULL, false},
        {"taper", FIELD_COUNT, &level->taper, NULL, false},
        {"via", FIELD_WORD, &via, "each|first|switch", false},
        {"link", FIELD_NODE, &link, NULL, true},
        {"nic", FIELD_NODE, &nic, NULL, false},
        {"global", FIELD_NODE, &global, NULL, false},
    };
    if (!READ_FIELDS(g, map, fields))
        return;
    const yaml_node_t *shape = find_maker(g, map, shapes, &hub, &kind);
    level->kind = (enum peal_make_kind)kind;
    if (is_good(g))
        read_shape(g, fields[kind].name, shape, level, sizes);
    if (is_good(g) && kind == PEAL_MAKE_FAT_TREE && level->arity < 2)
        refuse(g, map, "a fat_tree needs 'arity': the links down of a switch, 2 or more");
    if (is_good(g))
        read_link(g, link, &level->link, NULL);
    level->global_link = level->link;
    if (is_good(g) && global)
        read_link(g, global, &level->global_link, NULL);
    level->has_nic = nic != NULL;
    if (is_good(g) && nic)
        read_link(g, nic, &level->nic_link, &level->nic.lat);
    if (is_good(g) && hub)
        read_hub(g, hub, &level->hub);
    default_via(levels, i, via, level);
}

static void read_levels(struct graph_reader *g, const yaml_node_t *list)
{
    size_t count = count_items(list);
    struct peal_make_level levels[PEAL_GRAPH_MAX_LEVELS];
    if (count == 0 || count > PEAL_GRAPH_MAX_LEVELS) {
        refuse(g, list, "1 to %d levels, from the inside out", PEAL_GRAPH_MAX_LEVELS);
        return;
    }
    uint32_t *sizes = malloc(count * PEAL_MAKE_MAX_SIZES * sizeof *sizes);
    if (!sizes) {
        g->graph->status = PEAL_NO_MEMORY;
        return;
    }
    for (uint32_t i = 0; i < count && is_good(g); i++)
        read_level(g, item_of(g, list, i), levels, i, sizes + (size_t)i * PEAL_MAKE_MAX_SIZES);
    if (is_good(g))
        peal_make_levels(g->graph, levels, (uint32_t)count);
    free(sizes);
}

/* Nodes and links. */

/* The group of a path, "node0/cube1", made where it is new. The level of a part is its name without
 * the number at its end. */
static uint32_t find_group(struct graph_reader *g, const char *path)
{
    uint32_t at = PEAL_GRAPH_NONE;
    while (*path && is_good(g)) {
        char name[PEAL_GRAPH_MAX_NAME + 1], level[PEAL_GRAPH_MAX_NAME + 1];
        size_t len = strcspn(path, "/"), end;
        snprintf(name, sizeof name, "%.*s", (int)peal_size_min(len, PEAL_GRAPH_MAX_NAME), path);
        for (end = strlen(name); end > 0 && isdigit((unsigned char)name[end - 1]); end--)
            continue;
        snprintf(level, sizeof level, "%.*s", (int)end, end ? name : "");
        uint32_t found = 0;
        while (found < g->graph->groups.len && (g->graph->groups.at[found].parent != at ||
                                                strcmp(g->graph->groups.at[found].name, name) != 0))
            found++;
        if (found == g->graph->groups.len)
            found = peal_graph_add_group(g->graph, at, end ? level : "group", name);
        at = found;
        path += len + (path[len] == '/');
    }
    return at;
}

static void read_node(struct graph_reader *g, const yaml_node_t *map)
{
    const char *name = NULL, *group = NULL;
    uint32_t count = 0;
    int kind = 0;
    struct peal_graph_node node = {.group = PEAL_GRAPH_NONE, .pos = peal_yaml_pos(g->y, map)};
    const struct yaml_field fields[] = {
        {"name", FIELD_TEXT, &name, NULL, true},
        {"kind", FIELD_WORD, &kind, "pe|switch|nic|memory", false},
        {"count", FIELD_COUNT, &count, NULL, false},
        {"group", FIELD_TEXT, &group, NULL, false},
        {"lat_ns", FIELD_NS, &node.lat, NULL, false},
        {"reduces", FIELD_BOOL, &node.reduces, NULL, false},
        {"multicasts", FIELD_BOOL, &node.multicasts, NULL, false},
        {"ends", FIELD_BOOL, &node.ends, NULL, false},
    };
    if (!READ_FIELDS(g, map, fields))
        return;
    node.kind = (enum peal_node_kind)kind;
    if (group)
        node.group = find_group(g, group);
    node.name = name;
    for (uint32_t i = 0; i < count && is_good(g); i++) {
        char numbered[PEAL_GRAPH_MAX_NAME + 16];
        snprintf(numbered, sizeof numbered, "%.*s%u", PEAL_GRAPH_MAX_NAME + 1, name, i);
        node.name = numbered;
        peal_graph_add_node(g->graph, &node);
    }
    if (!count && is_good(g))
        peal_graph_add_node(g->graph, &node);
}

/* The node that a scalar names. */
static uint32_t find_node(struct graph_reader *g, const yaml_node_t *node)
{
    const char *name = peal_yaml_text(node);
    uint32_t found = name ? peal_graph_find(g->graph, name) : PEAL_GRAPH_NONE;
    if (found == PEAL_GRAPH_NONE)
        refuse(g, node, name ? "there is no node '%s'" : "expected the name of a node", name);
    return found;
}

static void read_edge(struct graph_reader *g, const yaml_node_t *map)
{
    const yaml_node_t *from = NULL, *to = NULL;
    struct peal_graph_link link = {.lanes = 1, .pos = peal_yaml_pos(g->y, map)};
    bool one_way = false;
    int mode = 0;
    const struct yaml_field fields[] = {
        {"from", FIELD_NODE, &from, NULL, true},
        {"to", FIELD_NODE, &to, NULL, true},
        {"bw_GBps", FIELD_RATE, &link.rate, NULL, true},
        {"lat_ns", FIELD_NS, &link.lat, NULL, false},
        {"lanes", FIELD_COUNT, &link.lanes, NULL, false},
        {"mode", FIELD_WORD, &mode, modes, false},
        {"kind", FIELD_TEXT, &link.kind, NULL, false},
        {"one_way", FIELD_BOOL, &one_way, NULL, false},
    };
    if (!READ_FIELDS(g, map, fields))
        return;
    link.mode = (enum peal_graph_mode)mode;
    link.from = find_node(g, from);
    if (is_good(g))
        link.to = find_node(g, to);
    if (is_good(g) && one_way)
        peal_graph_add_link(g->graph, &link);
    else if (is_good(g))
        peal_graph_add_both(g->graph, &link);
}

static void read_missing(struct graph_reader *g, const yaml_node_t *pair)
{
    if (pair->type != YAML_SEQUENCE_NODE || count_items(pair) != 2) {
        refuse(g, pair, "expected two nodes: [a, b]");
        return;
    }
    uint32_t a = find_node(g, item_of(g, pair, 0));
    uint32_t b = is_good(g) ? find_node(g, item_of(g, pair, 1)) : 0;
    if (is_good(g) && peal_graph_remove_links(g->graph, a, b) == 0)
        refuse(g, pair, "no link joins '%s' and '%s'", g->graph->nodes.at[a].name,
               g->graph->nodes.at[b].name);
}

static void read_way(struct graph_reader *g, const yaml_node_t *list)
{
    size_t count = count_items(list);
    uint32_t *nodes = malloc((count + 1) * sizeof *nodes);
    if (!nodes)
        g->graph->status = PEAL_NO_MEMORY;
    for (size_t i = 0; i < count && is_good(g); i++)
        nodes[i] = find_node(g, item_of(g, list, i));
    if (is_good(g))
        peal_graph_add_way(g->graph, nodes, (uint32_t)count, peal_yaml_pos(g->y, list));
    free(nodes);
}

static void read_list(struct graph_reader *g, const yaml_node_t *list,
                      void (*read)(struct graph_reader *g, const yaml_node_t *item))
{
    if (!list)
        return;
    if (list->type != YAML_SEQUENCE_NODE)
        refuse(g, list, "expected a list");
    for (size_t i = 0; i < count_items(list) && is_good(g); i++)
        read(g, item_of(g, list, i));
}

static void put_word(const char *text, struct peal_text *out)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
    struct peal_json json;
    if (*text && *text != '-' && text[strspn(text, plain)] == 0) {
        peal_text_puts(out, text);
        return;
    }
    peal_json_init(&json, out, 0);
    peal_json_string(&json, text);
}

/* The parts as they were written, in one style; they have been read without an error. */
static void put_flow(const struct graph_reader *g, const yaml_node_t *node, struct peal_text *out)
{
    const char *text = peal_yaml_text(node);
    if (text) {
        put_word(text, out);
    } else if (node->type == YAML_SEQUENCE_NODE) {
        peal_text_puts(out, "[");
        for (size_t i = 0; i < count_items(node); i++) {
            peal_text_puts(out, i ? ", " : "");
            put_flow(g, item_of(g, node, i), out);
        }
        peal_text_puts(out, "]");
    } else {
        const yaml_node_pair_t *pair = node->data.mapping.pairs.start, *first = pair;
        peal_text_puts(out, "{");
        for (; pair < node->data.mapping.pairs.top; pair++) {
            peal_text_puts(out, pair == first ? "" : ", ");
            put_flow(g, yaml_document_get_node(g->y->document, pair->key), out);
            peal_text_puts(out, ": ");
            put_flow(g, yaml_document_get_node(g->y->document, pair->value), out);
        }
        peal_text_puts(out, "}");
    }
}

static void put_part(const struct graph_reader *g, const char *name, const yaml_node_t *list,
                     struct peal_text *out)
{
    if (!list)
        return;
    peal_text_printf(out, "  %s:\n", name);
    /* Aliases may say in a few bytes what is long. */
    for (size_t i = 0; i < count_items(list) && out->len < PEAL_MACHINE_MAX_BYTES; i++) {
        peal_text_puts(out, "    - ");
        put_flow(g, item_of(g, list, i), out);
        peal_text_puts(out, "\n");
    }
}

static bool keep_text(const struct graph_reader *g, const struct peal_yaml_graph *parts,
                      struct peal_machine *machine)
{
    struct peal_text text = {0};
    put_part(g, "levels", parts->levels, &text);
    put_part(g, "nodes", parts->nodes, &text);
    put_part(g, "links", parts->links, &text);
    put_part(g, "without", parts->without, &text);
    put_part(g, "ways", parts->ways, &text);
    machine->topology_text = peal_arena_copy(&machine->arena, peal_text_get(&text), text.len);
    bool good = !text.failed && text.len < PEAL_MACHINE_MAX_BYTES && machine->topology_text;
    peal_text_release(&text);
    return good;
}

bool peal_yaml_graph_read(const struct peal_yaml *y, const struct peal_yaml_graph *parts,
                          struct peal_machine *machine)
{
    struct graph_reader g = {.y = y, .graph = peal_graph_new(y->diags)};
    if (!g.graph)
        return false;
    if (parts->levels)
        read_levels(&g, parts->levels);
    read_list(&g, parts->nodes, read_node);
    read_list(&g, parts->links, read_edge);
    read_list(&g, parts->without, read_missing);
    if (parts->nodes || parts->links || parts->without) {
        g.graph->grid.dims = 0; /* it may not be whole */
        if (g.graph->rule == PEAL_ROUTE_DIMENSION)
            g.graph->rule = PEAL_ROUTE_SHORTEST;
    }
    read_list(&g, parts->ways, read_way);
    if (peal_graph_finish(g.graph) != PEAL_OK || !keep_text(&g, parts, machine)) {
        if (g.graph->status != PEAL_INVALID)
            peal_diag_error(y->diags, (struct peal_pos){.source = y->source, .line = 1, .col = 1},
                            "not enough memory for the machine's nodes and links");
        peal_graph_free(g.graph);
        return false;
    }
    machine->graph = g.graph;
    machine->has_own_graph = true;
    machine->rule = g.graph->rule;
    machine->pes = g.graph->pes;
    return true;
}

/* Printing. */

static void put_group(const struct peal_graph *graph, uint32_t group, struct peal_text *out)
{
    if (graph->groups.at[group].parent != PEAL_GRAPH_NONE) {
        put_group(graph, graph->groups.at[group].parent, out);
        peal_text_puts(out, "/");
    }
    peal_text_puts(out, graph->groups.at[group].name);
}

static void put_node(const struct peal_graph *graph, const struct peal_graph_node *node,
                     struct peal_text *out)
{
    struct peal_text group = {0};
    peal_text_puts(out, "    - {name: ");
    put_word(node->name, out);
    peal_text_printf(out, ", kind: %s", peal_node_kind_name(node->kind));
    if (node->group != PEAL_GRAPH_NONE) {
        put_group(graph, node->group, &group);
        peal_text_puts(out, ", group: ");
        put_word(peal_text_get(&group), out);
        peal_text_release(&group);
    }
    if (node->lat) {
        peal_text_puts(out, ", lat_ns: ");
        peal_time_print_ns(node->lat, out);
    }
    peal_text_printf(out, "%s%s%s}\n", node->reduces ? ", reduces: true" : "",
                     node->multicasts ? ", multicasts: true" : "",
                     node->ends && node->kind != PEAL_NODE_MEMORY ? ", ends: true" : "");
}

static bool is_back(const struct peal_graph_link *a, const struct peal_graph_link *b)
{
    return a->from == b->to && a->to == b->from && peal_rate_compare(a->rate, b->rate) == 0 &&
           a->lat == b->lat && a->lanes == b->lanes && a->mode == b->mode && a->kind == b->kind;
}

static void put_link(const struct peal_graph *graph, const struct peal_graph_link *link, bool both,
                     struct peal_text *out)
{
    static const char *const words[] = {"", ", mode: cut-through", ", mode: store-and-forward"};
    struct peal_rate one = peal_rate_reduced(link->rate.num * link->lanes, link->rate.den);
    peal_text_puts(out, "    - {from: ");
    put_word(graph->nodes.at[link->from].name, out);
    peal_text_puts(out, ", to: ");
    put_word(graph->nodes.at[link->to].name, out);
    peal_text_puts(out, ", bw_GBps: ");
    peal_rate_print(one, out);
    peal_text_puts(out, ", lat_ns: ");
    peal_time_print_ns(link->lat, out);
    peal_text_printf(out, ", lanes: %u, kind: ", link->lanes);
    put_word(link->kind, out);
    peal_text_printf(out, "%s%s}\n", words[link->mode], both ? "" : ", one_way: true");
}

void peal_yaml_graph_print(const struct peal_machine *machine, struct peal_text *out)
{
    const struct peal_graph *graph = machine->graph;
    if (machine->topology_text) {
        peal_text_puts(out, machine->topology_text);
        return;
    }
    peal_text_puts(out, "  nodes:\n");
    for (size_t i = 0; i < graph->nodes.len; i++)
        put_node(graph, &graph->nodes.at[i], out);
    peal_text_puts(out, "  links:\n");
    for (size_t i = 0; i < graph->links.len; i++) {
        const struct peal_graph_link *link = &graph->links.at[i];
        bool both = i + 1 < graph->links.len && is_back(link, link + 1);
        put_link(graph, link, both, out);
        i += both;
    }
}
