/* SPDX-License-Identifier: Apache-2.0 */
/* A machine file becomes a struct: libyaml's document, walked by the table machine.def.
 *
 * The walk goes no deeper than the table's paths, so that deep, cyclic or aliased documents cost
 * nothing; the text itself is limited in size.
 */
#include "sim/machine/machine.h"

#include "base/base.h"
#include "sim/machine/machine_value.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct machine_reader {
    struct peal_machine *machine;
    const struct peal_source *source;
    yaml_document_t *document;
    struct peal_diags *diags;
    struct peal_pos seen[PEAL_KEY_COUNT]; /* line 0 = not given */
    struct peal_pos top;
    bool failed;
};

static struct peal_pos pos_of(const struct machine_reader *r, const yaml_node_t *node)
{
    size_t len = 1;
    if (node->start_mark.line == node->end_mark.line &&
        node->end_mark.index > node->start_mark.index)
        len = node->end_mark.index - node->start_mark.index;
    return (struct peal_pos){.source = r->source,
                             .line = (uint32_t)node->start_mark.line + 1,
                             .col = (uint32_t)node->start_mark.column + 1,
                             .len = (uint32_t)len};
}

/* The text of a scalar. NULL: the node is something else or contains a NUL byte. */
static const char *scalar_of(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return NULL;
    return text;
}

/* A leaf: a scalar, or a sequence of two for PAIR. */
static void read_leaf(struct machine_reader *r, enum peal_machine_key key, const yaml_node_t *node,
                      struct peal_pos key_pos)
{
    const char *texts[2] = {NULL, NULL};
    size_t count = 0;
    struct peal_pos pos = pos_of(r, node);
    if (r->seen[key].line) {
        peal_diag_error(r->diags, key_pos, "'%s' is given twice", peal_machine_key_path(key));
        peal_diag_note(r->diags, r->seen[key], "here for the first time");
        r->failed = true;
        return;
    }
    r->seen[key] = key_pos;
    if (node->type == YAML_SEQUENCE_NODE) {
        const yaml_node_item_t *item = node->data.sequence.items.start;
        for (; item < node->data.sequence.items.top; item++, count++) {
            yaml_node_t *element = yaml_document_get_node(r->document, *item);
            if (count < 2)
                texts[count] = scalar_of(element);
        }
    } else {
        texts[0] = scalar_of(node);
        count = 1;
    }
    struct peal_machine_input input = {
        .texts = {texts[0], texts[1]}, .count = count, .is_list = node->type == YAML_SEQUENCE_NODE};
    if (!peal_machine_value_read(r->machine, key, &input, pos, r->diags))
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
    peal_diag_error(r->diags, pos, "unknown key '%s'", path);
    peal_diag_note(r->diags, (struct peal_pos){0}, "known here: %s", peal_text_get(&names));
    peal_text_release(&names);
    r->failed = true;
}

static void read_map(struct machine_reader *r, const yaml_node_t *node, const char *prefix)
{
    if (node->type != YAML_MAPPING_NODE) {
        peal_diag_error(r->diags, pos_of(r, node), "expected 'key: value' lines%s%s",
                        *prefix ? " below " : "", prefix);
        r->failed = true;
        return;
    }
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top && r->diags->errors < PEAL_DIAG_LIMIT; pair++) {
        yaml_node_t *key_node = yaml_document_get_node(r->document, pair->key);
        yaml_node_t *value = yaml_document_get_node(r->document, pair->value);
        const char *name = scalar_of(key_node);
        char path[96];
        if (!name || *name == 0 || strchr(name, '.')) {
            peal_diag_error(r->diags, pos_of(r, key_node), "a key must be a plain name");
            r->failed = true;
            continue;
        }
        int len = snprintf(path, sizeof path, "%s%s", prefix, name);
        bool is_prefix = false;
        enum peal_machine_key key = PEAL_KEY_COUNT;
        if (len > 0 && (size_t)len < sizeof path - 1)
            key = find_key(path, &is_prefix);
        if (key != PEAL_KEY_COUNT) {
            read_leaf(r, key, value, pos_of(r, key_node));
        } else if (is_prefix) {
            path[len] = '.';
            path[len + 1] = 0;
            read_map(r, value, path);
        } else {
            unknown_key(r, pos_of(r, key_node), path, prefix);
        }
    }
}

static void yaml_error(struct machine_reader *r, const yaml_parser_t *parser)
{
    struct peal_pos pos = {.source = r->source,
                           .line = (uint32_t)parser->problem_mark.line + 1,
                           .col = (uint32_t)parser->problem_mark.column + 1};
    if (parser->error == YAML_MEMORY_ERROR)
        peal_diag_error(r->diags, pos, "not enough memory to read this");
    else
        peal_diag_error(r->diags, pos, "not YAML: %s",
                        parser->problem ? parser->problem : "unreadable");
    r->failed = true;
}

/* libyaml takes quadratic time for deeply nested brackets; a machine file has three levels.
 * Brackets in comments do not count. */
static bool is_too_deep(struct machine_reader *r)
{
    enum { MAX_DEPTH = 64 };
    const char *text = r->source->text;
    int depth = 0;
    uint32_t line = 1;
    for (size_t i = 0; i < r->source->len; i++) {
        if (text[i] == '#' && (i == 0 || text[i - 1] == ' ' || text[i - 1] == '\n'))
            while (i + 1 < r->source->len && text[i + 1] != '\n')
                i++;
        line += text[i] == '\n';
        depth += text[i] == '[' || text[i] == '{';
        depth -= (text[i] == ']' || text[i] == '}') && depth > 0;
        if (depth > MAX_DEPTH) {
            peal_diag_error(r->diags,
                            (struct peal_pos){.source = r->source, .line = line, .col = 1},
                            "brackets are nested more than %d deep", MAX_DEPTH);
            return true;
        }
    }
    return false;
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
    yaml_parser_set_input_string(&parser, (const unsigned char *)r->source->text, r->source->len);
    if (!yaml_parser_load(&parser, &document)) {
        yaml_error(r, &parser);
    } else {
        yaml_node_t *root = yaml_document_get_root_node(&document);
        r->document = &document;
        if (root)
            read_map(r, root, "");
        else {
            peal_diag_error(r->diags, r->top, "the machine file is empty");
            r->failed = true;
        }
        r->document = NULL;
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
}

enum peal_status peal_machine_read(const struct peal_source *source, struct peal_diags *diags,
                                   struct peal_machine **out)
{
    struct peal_diags own;
    peal_diags_init(&own);
    struct machine_reader r = {.source = source,
                               .diags = diags ? diags : &own,
                               .top = {.source = source, .line = 1, .col = 1}};
    enum peal_status status = PEAL_NO_MEMORY;
    if (source->len > PEAL_MACHINE_MAX_BYTES) {
        peal_diag_error(r.diags, r.top, "a machine file has at most %d bytes, not %zu",
                        PEAL_MACHINE_MAX_BYTES, source->len);
        status = PEAL_INVALID;
        goto release_own;
    }
    r.machine = calloc(1, sizeof *r.machine);
    if (!r.machine)
        goto release_own;
    peal_arena_init(&r.machine->arena, PEAL_MACHINE_MAX_BYTES * 2);
    r.machine->name = peal_arena_copy(&r.machine->arena, source->name, strlen(source->name));
    peal_machine_defaults(r.machine);
    read_document(&r);
    if (!r.failed && !peal_machine_complete(r.machine, r.top, r.diags))
        r.failed = true;
    if (r.failed) {
        peal_machine_free(r.machine);
        status = PEAL_INVALID;
        goto release_own;
    }
    *out = r.machine;
    status = PEAL_OK;
release_own:
    peal_diags_release(&own);
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
    char *text = peal_arena_alloc(arena, PEAL_MACHINE_MAX_BYTES + 1);
    if (!source || !name || !text)
        return PEAL_NO_MEMORY;
    *source = (struct peal_source){.name = name, .text = text};
    FILE *file = fopen(path, "rb");
    if (file)
        source->len = fread(text, 1, PEAL_MACHINE_MAX_BYTES + 1, file);
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
    status = read_file(path, &used->arena, used, &source);
    if (status == PEAL_OK)
        status = peal_machine_read(source, used, out);
release_own:
    peal_diags_release(&own);
    return status;
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
    return PEAL_INVALID;
}

void peal_machine_free(struct peal_machine *machine)
{
    if (!machine)
        return;
    peal_arena_release(&machine->arena);
    free(machine);
}
