/* SPDX-License-Identifier: Apache-2.0 */
/* A machine file becomes a struct: libyaml's document, walked by the table machine.def.
 *
 * The walk goes no deeper than the table's paths, so that deep, cyclic or aliased documents cost
 * nothing; the text itself is limited in size.
 */
#include "sim/machine/machine.h"

#include "base/base.h"
#include "sim/machine/machine_value.h"
#include "sim/machine/machine_yaml.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct machine_reader {
    struct peal_machine *machine;
    struct peal_yaml yaml;
    struct peal_yaml_graph parts;
    struct peal_pos seen[PEAL_KEY_COUNT]; /* line 0 = not given */
    struct peal_pos top;
    bool failed;
};

/* A leaf: a scalar, or a sequence of two for PAIR. */
static void read_leaf(struct machine_reader *r, enum peal_machine_key key, const yaml_node_t *node,
                      struct peal_pos key_pos)
{
    const char *texts[2] = {NULL, NULL};
    size_t count = 0;
    struct peal_pos pos = peal_yaml_pos(&r->yaml, node);
    if (r->seen[key].line) {
        peal_diag_error(r->yaml.diags, key_pos, "'%s' is given twice", peal_machine_key_path(key));
        peal_diag_note(r->yaml.diags, r->seen[key], "here for the first time");
        r->failed = true;
        return;
    }
    r->seen[key] = key_pos;
    if (node->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = node->data.sequence.items.start;
        for (; item < node->data.sequence.items.top; item++, count++) {
            yaml_node_t *element = yaml_document_get_node(r->yaml.document, *item);
            if (count < 2)
                texts[count] = peal_yaml_text(element);
        }
    } else {
        texts[0] = peal_yaml_text(node);
        count = 1;
    }
    struct peal_machine_input input = {
        .texts = {texts[0], texts[1]}, .count = count, .is_list = node->type == YAML_SEQUENCE_NODE};
    if (!peal_machine_value_read(r->machine, key, &input, pos, r->yaml.diags))
        r->failed = true;
}

/* The key with this path, or PEAL_KEY_COUNT. *is_prefix: there are keys below it. */
static enum peal_machine_key find_key(const char *path, bool *is_prefix)
{
    size_t len = strlen(path);
    *is_prefix = false;
    for (int i = 0; i < PEAL_KEY_COUNT; i++) {
        const char *full = peal_machine_key_path((enum peal_machine_key)i);
        if (strncmp(full, path, len) != 0)
            continue;
        if (full[len] == 0)
            return (enum peal_machine_key)i;
        if (full[len] == '.')
            *is_prefix = true;
    }
    return PEAL_KEY_COUNT;
}

/* The names that are allowed below `prefix` ("links." or ""), for a message. */
static void list_names(const char *prefix, struct peal_text *out)
{
    size_t len = strlen(prefix);
    const char *last = "";
    size_t last_len = 0;
    for (int i = 0; i < PEAL_KEY_COUNT; i++) {
        const char *full = peal_machine_key_path((enum peal_machine_key)i);
        if (strncmp(full, prefix, len) != 0)
            continue;
        const char *name = full + len;
        size_t n = strcspn(name, ".");
        if (n == last_len && strncmp(name, last, n) == 0)
            continue;
        peal_text_printf(out, "%s%.*s", out->len ? ", " : "", (int)n, name);
        last = name;
        last_len = n;
    }
}

static void unknown_key(struct machine_reader *r, struct peal_pos pos, const char *path,
                        const char *prefix)
{
    struct peal_text names = {0};
    list_names(prefix, &names);
    if (strcmp(prefix, "topology.") == 0)
        peal_text_puts(&names, ", levels, nodes, links, without, ways");
    peal_diag_error(r->yaml.diags, pos, "unknown key '%s'", path);
    peal_diag_note(r->yaml.diags, (struct peal_pos){0}, "known here: %s", peal_text_get(&names));
    peal_text_release(&names);
    r->failed = true;
}

static void read_map(struct machine_reader *r, const yaml_node_t *node, const char *prefix)
{
    if (node->type != YAML_MAPPING_NODE) {
        peal_diag_error(r->yaml.diags, peal_yaml_pos(&r->yaml, node),
                        "expected 'key: value' lines%s%s", *prefix ? " below " : "", prefix);
        r->failed = true;
        return;
    }
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top && r->yaml.diags->errors < PEAL_DIAG_LIMIT; pair++) {
        yaml_node_t *key_node = yaml_document_get_node(r->yaml.document, pair->key);
        yaml_node_t *value = yaml_document_get_node(r->yaml.document, pair->value);
        const char *name = peal_yaml_text(key_node);
        char path[96];
        if (!name || *name == 0 || strchr(name, '.')) {
            peal_diag_error(r->yaml.diags, peal_yaml_pos(&r->yaml, key_node),
                            "a key must be a plain name");
            r->failed = true;
            continue;
        }
        int len = snprintf(path, sizeof path, "%s%s", prefix, name);
        bool is_prefix = false;
        enum peal_machine_key key = PEAL_KEY_COUNT;
        if (len > 0 && (size_t)len < sizeof path - 1)
            key = find_key(path, &is_prefix);
        const yaml_node_t **part = NULL;
        if (strcmp(prefix, "topology.") == 0)
            part = peal_yaml_graph_part(&r->parts, name);
        if (part && *part) {
            peal_diag_error(r->yaml.diags, peal_yaml_pos(&r->yaml, key_node), "'%s' is given twice",
                            path);
            r->failed = true;
        } else if (part) {
            *part = value;
        } else if (key != PEAL_KEY_COUNT) {
            read_leaf(r, key, value, peal_yaml_pos(&r->yaml, key_node));
        } else if (is_prefix) {
            path[len] = '.';
            path[len + 1] = 0;
            read_map(r, value, path);
        } else {
            unknown_key(r, peal_yaml_pos(&r->yaml, key_node), path, prefix);
        }
    }
}

static void yaml_error(struct machine_reader *r, const yaml_parser_t *parser)
{
    struct peal_pos pos = {.source = r->yaml.source,
                           .line = (uint32_t)parser->problem_mark.line + 1,
                           .col = (uint32_t)parser->problem_mark.column + 1};
    if (parser->error == YAML_MEMORY_ERROR)
        peal_diag_error(r->yaml.diags, pos, "not enough memory to read this");
    else
        peal_diag_error(r->yaml.diags, pos, "not YAML: %s",
                        parser->problem ? parser->problem : "unreadable");
    r->failed = true;
}

/* libyaml takes quadratic time for deeply nested brackets; a machine file has three levels.
 * Brackets in comments do not count. */
static bool is_too_deep(struct machine_reader *r)
{
    enum { MAX_DEPTH = 64 };
    const char *text = r->yaml.source->text;
    int depth = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < r->yaml.source->len; i++) {
        if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n'))
            while (i + 1 < r->yaml.source->len && text[i + 1] != '\n')
                i++;
        line += text[i] == '\n';
        depth += text[i] == '[' || text[i] == '{';
        depth -= (text[i] == ']' || text[i] == '}') && depth > 0;
        if (depth > MAX_DEPTH) {
            peal_diag_error(r->yaml.diags,
                            (struct peal_pos){.source = r->yaml.source, .line = line, .col = 1},
                            "brackets are nested more than %d deep", MAX_DEPTH);
            return true;
        }
    }
    return false;
}

/* A machine has a graph of its own, or one by keys. */
static void read_graph(struct machine_reader *r)
{
    const struct peal_yaml_graph *p = &r->parts;
    const yaml_node_t *first = p->levels;
    for (int i = 0; i < 4 && !first; i++)
        first = (const yaml_node_t *[]){p->nodes, p->links, p->without, p->ways}[i];
    if (!first || r->failed)
        return;
    if (!p->levels && !p->nodes)
        peal_diag_error(r->yaml.diags, peal_yaml_pos(&r->yaml, first),
                        "the topology has neither 'levels' nor 'nodes'");
    else if (r->seen[PEAL_KEY_FLAT].line || r->seen[PEAL_KEY_PES].line)
        peal_diag_error(
            r->yaml.diags, r->seen[r->seen[PEAL_KEY_FLAT].line ? PEAL_KEY_FLAT : PEAL_KEY_PES],
            "a topology by 'levels' or 'nodes' has no '%s'",
            peal_machine_key_path(r->seen[PEAL_KEY_FLAT].line ? PEAL_KEY_FLAT : PEAL_KEY_PES));
    else if (r->machine->graph)
        peal_diag_error(r->yaml.diags, peal_yaml_pos(&r->yaml, first),
                        "the machine has its topology already");
    else if (peal_yaml_graph_read(&r->yaml, p, r->machine))
        return;
    r->failed = true;
}

static void read_document(struct machine_reader *r)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (is_too_deep(r)) {
        r->failed = true;
        return;
    }
    if (!yaml_parser_initialize(&parser)) {
        r->failed = true;
        return;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)r->yaml.source->text,
                                 r->yaml.source->len);
    if (!yaml_parser_load(&parser, &document)) {
        yaml_error(r, &parser);
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&document);
        r->yaml.document = &document;
        if (root) {
            read_map(r, root, "");
            read_graph(r);
        } else {
            peal_diag_error(r->yaml.diags, r->top, "the machine file is empty");
            r->failed = true;
        }
        r->yaml.document = NULL;
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
}

static struct peal_pos top_of(const struct peal_source *source)
{
    return (struct peal_pos){.source = source, .line = 1, .col = 1};
}

/* With its defaults. NULL: out of memory. */
static struct peal_machine *new_machine(const struct peal_source *source)
{
    struct peal_machine *machine = calloc(1, sizeof *machine);
    if (!machine)
        return NULL;
    peal_arena_init(&machine->arena, PEAL_MACHINE_MAX_BYTES * 4);
    machine->name = peal_arena_copy(&machine->arena, source->name, strlen(source->name));
    peal_machine_defaults(machine);
    return machine;
}

/* Takes the keys of a text. */
static enum peal_status read_keys(struct peal_machine *machine, const struct peal_source *source,
                                  struct peal_diags *diags)
{
    struct machine_reader r = {
        .machine = machine, .yaml = {.source = source, .diags = diags}, .top = top_of(source)};
    if (source->len > PEAL_MACHINE_MAX_BYTES) {
        peal_diag_error(diags, r.top, "a machine file has at most %d bytes, not %zu",
                        PEAL_MACHINE_MAX_BYTES, source->len);
        return PEAL_INVALID;
    }
    read_document(&r);
    return r.failed ? PEAL_INVALID : PEAL_OK;
}

enum peal_status peal_machine_read(const struct peal_source *source, struct peal_diags *diags,
                                   struct peal_machine **out)
{
    struct peal_diags own;
    struct peal_machine *machine = new_machine(source);
    enum peal_status status = machine ? PEAL_OK : PEAL_NO_MEMORY;
    peal_diags_init(&own);
    if (machine)
        status = read_keys(machine, source, diags ? diags : &own);
    if (status == PEAL_OK && !peal_machine_complete(machine, top_of(source), diags ? diags : &own))
        status = PEAL_INVALID;
    if (status == PEAL_OK)
        *out = machine;
    else
        peal_machine_free(machine);
    peal_diags_release(&own);
    return status;
}

/* What a machine is that only its links limit: the keys that a graph from elsewhere leaves open. */
static const char link_machine[] = "dma: {bw_GBps: .inf}\n"
                                   "mem: {tcm: {bw_GBps: .inf}}\n"
                                   "math: {clock_GHz: .inf, lanes: {f32: 1}}\n"
                                   "ccl: {embed: row_major}\n";

/* A machine of a graph that was read elsewhere, which it owns from now on, also after a failure. */
static enum peal_status make_machine(const struct peal_source *source,
                                     const struct peal_topology *topology, struct peal_diags *diags,
                                     struct peal_machine **out)
{
    const struct peal_source texts[] = {
        {.name = source->name, .text = link_machine, .len = strlen(link_machine)},
        {.name = source->name,
         .text = topology->keys,
         .len = topology->keys ? strlen(topology->keys) : 0}};
    struct peal_machine *machine = new_machine(source);
    enum peal_status status = machine ? PEAL_OK : PEAL_NO_MEMORY;
    if (!machine) {
        peal_graph_free(topology->graph);
        return status;
    }
    machine->graph = topology->graph;
    machine->has_own_graph = true;
    machine->rule = topology->graph->rule;
    machine->pes = topology->graph->pes;
    for (int i = 0; i < 2 && status == PEAL_OK; i++)
        status = texts[i].len ? read_keys(machine, &texts[i], diags) : PEAL_OK;
    if (status == PEAL_OK && !peal_machine_complete(machine, top_of(source), diags))
        status = PEAL_INVALID;
    if (status == PEAL_OK)
        *out = machine;
    else
        peal_machine_free(machine);
    return status;
}

/* The whole file. Its name and text live in the arena, since diagnostics point into them. */
static enum peal_status read_file(const char *path, struct peal_arena *arena,
                                  struct peal_diags *diags, struct peal_source **out)
{
    enum peal_status status = PEAL_NO_MEMORY;
    struct peal_source *source = PEAL_ARENA_NEW(arena, struct peal_source);
    char *name = peal_arena_copy(arena, path, strlen(path));
    /* One byte more than allowed, so that a longer file is noticed. */
    FILE *file = fopen(path, "rb");
    size_t max = PEAL_TOPOLOGY_MAX_BYTES + 1;
    if (file && fseek(file, 0, SEEK_END) == 0 && ftell(file) >= 0)
        max = peal_size_min(max, (uint64_t)ftell(file) + 1);
    if (file)
        rewind(file);
    char *text = peal_arena_alloc(arena, max);
    if (!source || !name || !text) {
        if (file)
            fclose(file);
        return PEAL_NO_MEMORY;
    }
    *source = (struct peal_source){.name = name, .text = text};
    if (file)
        source->len = fread(text, 1, max, file);
    if (!file || ferror(file)) {
        peal_diag_error(diags, (struct peal_pos){0}, "cannot read '%s': %s", path, strerror(errno));
        status = PEAL_INVALID;
    } else {
        *out = source;
        status = PEAL_OK;
    }
    if (file)
        fclose(file);
    return status;
}

/* A text that was made for a path. */
static enum peal_status keep_text(const char *path, const struct peal_text *text,
                                  struct peal_arena *arena, struct peal_source **out)
{
    struct peal_source *source = PEAL_ARENA_NEW(arena, struct peal_source);
    if (!source || text->failed)
        return PEAL_NO_MEMORY;
    source->name = peal_arena_copy(arena, path, strlen(path));
    source->text = peal_arena_copy(arena, peal_text_get(text), text->len);
    source->len = text->len;
    *out = source;
    return source->name && source->text ? PEAL_OK : PEAL_NO_MEMORY;
}

enum peal_status peal_machine_open(const char *path, struct peal_diags *diags,
                                   struct peal_machine **out)
{
    struct peal_diags own;
    struct peal_source *source = NULL;
    peal_diags_init(&own);
    struct peal_diags *used = diags;
    if (!used)
        used = &own;
    enum peal_status status = PEAL_INVALID;
    if (*path && !strpbrk(path, "/.")) {
        const struct peal_source *builtin = peal_machine_builtin(path, used);
        if (builtin)
            status = peal_machine_read(builtin, used, out);
        else
            status = PEAL_INVALID;
        goto release_own;
    }
    struct peal_topology topology = {0};
    struct peal_text several = {0};
    if (peal_topology_list(path, &several))
        status = keep_text(path, &several, &used->arena, &source);
    else
        status = read_file(path, &used->arena, used, &source);
    peal_text_release(&several);
    if (status == PEAL_OK)
        status = peal_topology_read(source, used, &topology);
    if (status == PEAL_OK && topology.graph)
        status = make_machine(source, &topology, used, out);
    else if (status == PEAL_OK)
        status = peal_machine_read(source, used, out);
release_own:
    peal_diags_release(&own);
    return status;
}

/* "links.xgmi.bw_GBps", "links.xgmi.lat_ns": of each lane of every link of that kind. */
enum set_link { SET_NO_LINK, SET_DONE, SET_FAILED };

static enum set_link set_links(struct peal_machine *machine, const char *path, const char *value,
                               struct peal_diags *diags)
{
    const char *kind = path + 6, *dot = strrchr(path, '.'), *why = NULL;
    bool is_rate = strcmp(dot ? dot : "", ".bw_GBps") == 0;
    bool is_lat = strcmp(dot ? dot : "", ".lat_ns") == 0;
    struct peal_rate rate = {0, 1}, all;
    uint64_t lat = 0;
    enum set_link done = SET_NO_LINK;
    if (strncmp(path, "links.", 6) != 0 || (!is_rate && !is_lat) || dot < kind)
        return SET_NO_LINK;
    if (is_rate ? !peal_rate_parse(value, &rate, &why) : !peal_time_parse_ns(value, &lat, &why)) {
        peal_diag_error(diags, (struct peal_pos){0}, "'%s': %s", path, why);
        return SET_FAILED;
    }
    for (size_t i = 0; i < machine->graph->links.len && done != SET_FAILED; i++) {
        struct peal_graph_link *link = &machine->graph->links.at[i];
        if (strlen(link->kind) != (size_t)(dot - kind) ||
            memcmp(link->kind, kind, (size_t)(dot - kind)) != 0)
            continue;
        done = SET_DONE;
        if (is_lat) {
            link->lat = lat;
        } else if (peal_rate_bundle(rate, link->lanes, &all)) {
            link->rate = all;
        } else {
            peal_diag_error(diags, (struct peal_pos){0}, "'%s' has too many digits", path);
            done = SET_FAILED;
        }
    }
    return done;
}

static bool set_one(struct peal_machine *machine, const char *setting, struct peal_diags *diags)
{
    char path[96], pair[2][32];
    bool is_prefix;
    const char *equals = strchr(setting, '=');
    size_t len = 0;
    if (equals)
        len = (size_t)(equals - setting);
    if (!equals || len >= sizeof path) {
        peal_diag_error(diags, (struct peal_pos){0}, "expected 'key=value', not '%s'", setting);
        return false;
    }
    memcpy(path, setting, len);
    path[len] = 0;
    enum peal_machine_key key = find_key(path, &is_prefix);
    if (machine->has_own_graph && (key == PEAL_KEY_COUNT || strncmp(path, "links.", 6) == 0)) {
        enum set_link set = set_links(machine, path, equals + 1, diags);
        if (set != SET_NO_LINK)
            return set == SET_DONE;
    }
    if (key == PEAL_KEY_COUNT) {
        const char *near = NULL;
        for (int i = 0; i < PEAL_KEY_COUNT; i++)
            near = peal_nearer(path, near, peal_machine_key_path((enum peal_machine_key)i));
        peal_diag_error(diags, (struct peal_pos){0}, "unknown machine key '%s'", path);
        if (near)
            peal_diag_note(diags, (struct peal_pos){0}, "did you mean '%s'?", near);
        else
            peal_diag_note(diags, (struct peal_pos){0},
                           "'peal sim --print-machine' shows all keys");
        return false;
    }
    struct peal_machine_input input = {.texts = {equals + 1, NULL}, .count = 1};
    if (sscanf(equals + 1, " [ %31[^], ] , %31[^], ] ]", pair[0], pair[1]) == 2)
        input =
            (struct peal_machine_input){.texts = {pair[0], pair[1]}, .count = 2, .is_list = true};
    return peal_machine_value_read(machine, key, &input, (struct peal_pos){0}, diags);
}

enum peal_status peal_machine_set(struct peal_machine *machine, const char *const *settings,
                                  size_t count, struct peal_diags *diags)
{
    struct peal_machine before = *machine;
    bool ok = true;
    for (size_t i = 0; i < count; i++)
        ok &= set_one(machine, settings[i], diags);
    if (ok && peal_machine_complete(machine, (struct peal_pos){0}, diags))
        return PEAL_OK;
    machine->keys = before.keys;
    machine->pes = before.pes;
    memcpy(machine->given, before.given, sizeof before.given);
    peal_machine_complete(machine, (struct peal_pos){0}, NULL); /* the graph, too */
    return PEAL_INVALID;
}

void peal_machine_free(struct peal_machine *machine)
{
    if (!machine)
        return;
    peal_graph_free(machine->graph);
    peal_arena_release(&machine->arena);
    free(machine);
}
