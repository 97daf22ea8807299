/* SPDX-License-Identifier: Apache-2.0 */
/* KERNEL.yaml beside KERNEL.cpp: its options, for those who do not want to give them each time.
 *
 *   entry: kernel_entry              then: second(x, s, ctx)         level: core
 *   args: in x: f32[256], ctx        implements: allreduce           blocks: 2
 *   pipes: pto-a5                    inputs: {indices: rows.bin}
 *
 * It is read if --args is not given, and holds where the command line says nothing. Files are beside
 * it. Only this form is walked: deep or aliased documents cost nothing. */
#include "cli/record/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yaml.h>

enum { MAX_BYTES = 1 << 16 };

struct beside {
    const struct peal_cli *cli;
    const char *path;
    yaml_document_t document;
    struct peal_recorded_options *options;
};

static bool bad(const struct beside *b, const yaml_node_t *node, const char *why)
{
    peal_cli_fail(b->cli, "%s:%zu: %s", b->path, node ? node->start_mark.line + 1 : (size_t)1, why);
    return false;
}

/* A word or a number, in the arena. */
static const char *scalar(const struct beside *b, const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) != node->data.scalar.length)
        return NULL;
    return peal_arena_copy(b->cli->arena, text, node->data.scalar.length);
}

/* A file beside this one. */
static const char *sibling(const struct beside *b, const char *name)
{
    const char *slash = strrchr(b->path, '/');
    struct peal_text path = {0};
    if (slash && name[0] != '/')
        peal_text_printf(&path, "%.*s", (int)(slash + 1 - b->path), b->path);
    peal_text_puts(&path, name);
    const char *kept = peal_arena_copy(b->cli->arena, peal_text_get(&path), path.len);
    peal_text_release(&path);
    return kept;
}

static bool read_inputs(struct beside *b, const yaml_node_t *node)
{
    struct peal_pairs *inputs = &b->options->inputs;
    if (node->type != YAML_MAPPING_NODE)
        return bad(b, node, "expected 'inputs: {NAME: FILE}'");
    if (inputs->len)
        return true;
    size_t n = (size_t)(node->data.mapping.pairs.top - node->data.mapping.pairs.start);
    struct peal_pair *list = peal_arena_alloc(b->cli->arena, n * sizeof *list + 1);
    for (size_t i = 0; list && i < n; i++) {
        const yaml_node_pair_t *pair = &node->data.mapping.pairs.start[i];
        const char *name = scalar(b, yaml_document_get_node(&b->document, pair->key));
        const char *file = scalar(b, yaml_document_get_node(&b->document, pair->value));
        if (!name || !file)
            return bad(b, node, "expected 'inputs: {NAME: FILE}'");
        list[i] = (struct peal_pair){name, sibling(b, file)};
    }
    if (list)
        *inputs = (struct peal_pairs){list, n};
    return list != NULL;
}

static bool read_level(struct beside *b, const yaml_node_t *node, const char *value)
{
    static const char *const words[] = {"both", "core", "pipe"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, words[i]) != 0)
            continue;
        if (b->options->level == PEAL_LEVEL_BOTH)
            b->options->level = i;
        return true;
    }
    return bad(b, node, "'level' is both, core or pipe");
}

static bool read_blocks(struct beside *b, const yaml_node_t *node, const char *value)
{
    char *end;
    long n = strtol(value, &end, 10);
    if (*end || n < 1 || n > REC_MAX_BLOCKS)
        return bad(b, node, "'blocks' is a number from 1 to 32");
    if (!b->options->blocks)
        b->options->blocks = n;
    return true;
}

static bool read_pair(struct beside *b, const yaml_node_t *key_node, const yaml_node_t *node)
{
    struct peal_recorded_options *o = b->options;
    const struct {
        const char *key;
        const char **value;
    } words[] = {{"entry", &o->entry},
                 {"args", &o->args},
                 {"then", &o->then},
                 {"implements", &o->implements},
                 {"pipes", &o->pipes}};
    const char *key = scalar(b, key_node), *value = scalar(b, node);
    if (key && node && strcmp(key, "inputs") == 0)
        return read_inputs(b, node);
    if (!key || !value)
        return bad(b, key_node, "expected 'KEY: VALUE'");
    if (strcmp(key, "level") == 0)
        return read_level(b, node, value);
    if (strcmp(key, "blocks") == 0)
        return read_blocks(b, node, value);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(key, words[i].key) != 0)
            continue;
        bool is_file = words[i].value == &o->pipes && strchr(value, '.');
        if (!*words[i].value)
            *words[i].value = is_file ? sibling(b, value) : value;
        return true;
    }
    return bad(b, key_node,
               "keys are entry, args, then, implements, level, pipes, blocks and inputs");
}

static bool read_document(struct beside *b)
{
    yaml_node_t *root = yaml_document_get_root_node(&b->document);
    if (!root || root->type != YAML_MAPPING_NODE)
        return bad(b, root, "expected 'KEY: VALUE' lines");
    for (yaml_node_pair_t *p = root->data.mapping.pairs.start; p < root->data.mapping.pairs.top;
         p++) {
        if (!read_pair(b, yaml_document_get_node(&b->document, p->key),
                       yaml_document_get_node(&b->document, p->value)))
            return false;
    }
    return true;
}

static bool read_text(struct beside *b, const struct peal_text *text)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        peal_cli_fail(b->cli, "out of memory");
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)peal_text_get(text), text->len);
    bool good = yaml_parser_load(&parser, &b->document) != 0;
    if (!good)
        peal_cli_fail(b->cli, "%s:%zu: %s", b->path, parser.problem_mark.line + 1,
                      peal_text_or_empty(parser.problem));
    yaml_parser_delete(&parser);
    if (good) {
        good = read_document(b);
        yaml_document_delete(&b->document);
    }
    return good;
}

bool peal_beside_read(const struct peal_cli *cli, const char *kernel,
                      struct peal_recorded_options *options)
{
    struct peal_text path = {0}, text = {0};
    const char *dot = strrchr(kernel, '.');
    bool good = true;
    if (options->args)
        return true;
    peal_text_printf(&path, "%.*s.yaml", (int)(dot - kernel), kernel);
    if (access(peal_text_get(&path), F_OK) == 0) {
        struct beside b = {.cli = cli, .path = peal_text_get(&path), .options = options};
        good = peal_text_read(&text, b.path, MAX_BYTES) && text.len <= MAX_BYTES;
        if (!good)
            peal_cli_fail(cli, "cannot read '%s', or it has more than 64 KiB", b.path);
        good = good && read_text(&b, &text);
    }
    peal_text_release(&text);
    peal_text_release(&path);
    return good;
}
