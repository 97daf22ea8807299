/* SPDX-License-Identifier: Apache-2.0 */
/* peal.yaml -> settings. Walks libyaml's document, no deeper than this form: deep or aliased documents
 * cost nothing.
 *
 *   exclude: PATTERN or [PATTERN, ...]      run: the same
 *   time: SECONDS                           OPTION: VALUE
 *   kernels: [{files: PATTERN or list, uses: the same, time: SECONDS, OPTION: VALUE}, ...]
 *
 * An OPTION is a long option of peal verify, its VALUE a word, a number, a list, or for NAME=VALUE a
 * mapping.
 */
#include "cli/ci/ci.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* The command's own business, or options that write files. */
static const char *const refused[] = {"json",     "html",        "sarif", "fix",   "fix-all",
                                      "output",   "certificate", "check", "fault", "jobs",
                                      "no-cache", "advice",      NULL};
/* Options whose values may name files, which have to be files of the repository. */
static const char *const of_files[] = {"machine", "pipes", "input", "op", NULL};

struct settings_reader {
    const struct peal_source *source;
    const struct peal_command *verify;
    struct peal_arena *arena;
    struct peal_diags *diags;
    yaml_document_t document;
    size_t words; /* read so far, aliases included */
    bool failed;
};

enum { MAX_WORDS = 1 << 16, MAX_OPTIONS = 256 };

static struct peal_pos pos_of(const struct settings_reader *r, const yaml_node_t *node)
{
    return (struct peal_pos){.source = r->source,
                             .line = (uint32_t)node->start_mark.line + 1,
                             .col = (uint32_t)node->start_mark.column + 1,
                             .len = 1};
}

static void bad(struct settings_reader *r, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void bad(struct settings_reader *r, const yaml_node_t *node, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    peal_diag_add(r->diags, PEAL_ERROR, pos_of(r, node), format, args);
    va_end(args);
    r->failed = true;
}

static yaml_node_t *node_at(struct settings_reader *r, int index)
{
    return yaml_document_get_node(&r->document, index);
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; *list; list++) {
        if (strcmp(*list, name) == 0)
            return true;
    }
    return false;
}

/* A word in the arena; NULL after a diagnostic. */
static char *word_of(struct settings_reader *r, const yaml_node_t *node)
{
    const char *text = NULL;
    if (node->type == YAML_SCALAR_NODE)
        text = (const char *)node->data.scalar.value;
    if (!text || strlen(text) != node->data.scalar.length || !*text) {
        bad(r, node, "expected a word or a number");
        return NULL;
    }
    char *copy = NULL;
    if (r->words++ < MAX_WORDS)
        copy = peal_arena_copy(r->arena, text, strlen(text));
    if (!copy)
        bad(r, node, "too many words");
    return copy;
}

static bool add_pattern(struct settings_reader *r, const yaml_node_t *node, const char **out)
{
    enum { LONGEST = 256 };
    *out = word_of(r, node);
    if (*out && strlen(*out) > LONGEST)
        bad(r, node, "a pattern of more than %d characters", LONGEST);
    return *out != NULL;
}

/* A pattern or a list of them. */
static void read_patterns(struct settings_reader *r, const yaml_node_t *node,
                          struct peal_ci_patterns *out)
{
    size_t count = 1;
    if (node->type == YAML_SEQUENCE_NODE)
        count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    out->len = 0;
    out->at =
        count <= PEAL_CI_ENTRIES ? peal_arena_alloc(r->arena, (count + 1) * sizeof *out->at) : NULL;
    if (!out->at) {
        bad(r, node, "more than %d patterns", PEAL_CI_ENTRIES);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = node;
        if (node->type == YAML_SEQUENCE_NODE)
            item = node_at(r, node->data.sequence.items.start[i]);
        out->len += add_pattern(r, item, &out->at[out->len]);
    }
}

static void read_seconds(struct settings_reader *r, const yaml_node_t *node, uint64_t *out)
{
    enum { LONGEST = 86400 };
    const char *text = word_of(r, node);
    char *end = NULL;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (text && (*end || !value || value > LONGEST || text[0] == '-'))
        bad(r, node, "'%s' is not a number of seconds from 1 to %d", text, LONGEST);
    else
        *out = value;
}

/* Would a file outside of the repository be read? */
static bool leaves(const char *value)
{
    const char *equals = strchr(value, '=');
    const char *path = equals ? equals + 1 : value;
    if (*path == '/')
        return true;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || at[2] == '\0'))
            return true;
    }
    return false;
}

/* "--name=value", tried with the command's own parser. */
static void add_option(struct settings_reader *r, const yaml_node_t *node,
                       struct peal_ci_entry *entry, const struct peal_option *row,
                       const char *value)
{
    struct peal_text text = {0}, why = {0};
    struct peal_args args;
    peal_text_printf(&text, "--%s%s%s", row->name, value ? "=" : "", peal_text_or_empty(value));
    char *option = peal_arena_copy(r->arena, peal_text_get(&text), text.len);
    void *scratch = peal_arena_alloc(r->arena, r->verify->size);
    char **grown = peal_arena_alloc(r->arena, ((size_t)entry->noptions + 2) * sizeof *grown);
    if (!option || !scratch || !grown || entry->noptions == MAX_OPTIONS) {
        bad(r, node, "too many options");
    } else if (value && is_one_of(row->name, of_files) && leaves(value)) {
        bad(r, node, "'%s' is not a file of the repository", value);
    } else {
        memcpy(scratch, r->verify->defaults, r->verify->size);
        if (entry->noptions)
            memcpy(grown, entry->options, (size_t)entry->noptions * sizeof *grown);
        grown[entry->noptions] = option;
        entry->options = grown;
        if (peal_options_parse(r->verify->options, false, 1, &option, scratch, r->arena, &args,
                               &why))
            entry->noptions++;
        else
            bad(r, node, "%s", peal_text_get(&why) + strspn(peal_text_get(&why), "-"));
    }
    peal_text_release(&text);
    peal_text_release(&why);
}

static void read_flag(struct settings_reader *r, const yaml_node_t *node,
                      struct peal_ci_entry *entry, const struct peal_option *row)
{
    const char *text = word_of(r, node);
    if (text && strcmp(text, "true") == 0)
        add_option(r, node, entry, row, NULL);
    else if (text && strcmp(text, "false") != 0)
        bad(r, node, "'%s' is true or false", row->name);
}

/* A list of words, joined by commas. */
static void read_list(struct settings_reader *r, const yaml_node_t *node,
                      struct peal_ci_entry *entry, const struct peal_option *row)
{
    struct peal_text joined = {0};
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top && !r->failed; item++) {
        const char *text = word_of(r, node_at(r, *item));
        if (text)
            peal_text_printf(&joined, "%s%s", joined.len ? "," : "", text);
        if (joined.len > PEAL_CI_SETTINGS_BYTES)
            bad(r, node, "too long");
    }
    if (!r->failed)
        add_option(r, node, entry, row, peal_text_get(&joined));
    peal_text_release(&joined);
}

static void read_pairs(struct settings_reader *r, const yaml_node_t *node,
                       struct peal_ci_entry *entry, const struct peal_option *row)
{
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const char *key = word_of(r, node_at(r, pair->key));
        const char *value = word_of(r, node_at(r, pair->value));
        struct peal_text both = {0};
        if (!key || !value)
            return;
        peal_text_printf(&both, "%s=%s", key, value);
        add_option(r, node_at(r, pair->value), entry, row, peal_text_get(&both));
        peal_text_release(&both);
    }
}

static void read_option(struct settings_reader *r, const yaml_node_t *node,
                        struct peal_ci_entry *entry, const struct peal_option *row)
{
    const char *text;
    if (row->kind == PEAL_OPTION_FLAG)
        read_flag(r, node, entry, row);
    else if (node->type == YAML_SEQUENCE_NODE)
        read_list(r, node, entry, row);
    else if (node->type == YAML_MAPPING_NODE && row->kind == PEAL_OPTION_PAIRS)
        read_pairs(r, node, entry, row);
    else if ((text = word_of(r, node)))
        add_option(r, node, entry, row, text);
}

static const struct peal_option *find_option(const struct settings_reader *r, const char *name)
{
    const struct peal_option *row = r->verify->options;
    while (peal_option_exists(row) && strcmp(row->name, name) != 0)
        row++;
    return peal_option_exists(row) && !is_one_of(name, refused) ? row : NULL;
}

static void unknown(struct settings_reader *r, const yaml_node_t *node, const char *key,
                    const char *const *own)
{
    const char *near = peal_nearest(key, own);
    for (const struct peal_option *row = r->verify->options; peal_option_exists(row); row++) {
        if (!is_one_of(row->name, refused))
            near = peal_nearer(key, near, row->name);
    }
    bool known = is_one_of(key, refused);
    bad(r, node, "unknown key '%s'%s%s%s", key,
        near && !known ? "; did you mean '" : "; see docs/ci.md", near && !known ? near : "",
        near && !known ? "'?" : "");
}

/* The key of a pair, checked not to come twice; NULL after a diagnostic. */
static const char *key_of(struct settings_reader *r, const yaml_node_t *mapping,
                          const yaml_node_pair_t *pair)
{
    const yaml_node_t *node = node_at(r, pair->key);
    const char *key = word_of(r, node);
    const yaml_node_pair_t *other = mapping->data.mapping.pairs.start;
    for (; key && other < pair; other++) {
        const yaml_node_t *before = node_at(r, other->key);
        if (before->type == YAML_SCALAR_NODE &&
            strcmp((const char *)before->data.scalar.value, key) == 0)
            bad(r, node, "key '%s' comes twice", key);
    }
    return key;
}

static void read_entry(struct settings_reader *r, const yaml_node_t *node,
                       struct peal_ci_entry *entry)
{
    static const char *const own[] = {"files", "uses", "time", NULL};
    entry->pos = pos_of(r, node);
    if (node->type != YAML_MAPPING_NODE) {
        bad(r, node, "expected keys and values, 'files' among them");
        return;
    }
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const char *key = key_of(r, node, pair);
        const yaml_node_t *value = node_at(r, pair->value);
        const struct peal_option *row = NULL;
        if (!key)
            continue;
        if (strcmp(key, "files") == 0)
            read_patterns(r, value, &entry->files);
        else if (strcmp(key, "uses") == 0)
            read_patterns(r, value, &entry->uses);
        else if (strcmp(key, "time") == 0)
            read_seconds(r, value, &entry->time);
        else if ((row = find_option(r, key)))
            read_option(r, value, entry, row);
        else
            unknown(r, node_at(r, pair->key), key, own);
    }
    if (!entry->files.len && !r->failed)
        bad(r, node, "'files' is missing: which files these settings are for");
}

static void read_entries(struct settings_reader *r, const yaml_node_t *node,
                         struct peal_ci_settings *out)
{
    if (node->type != YAML_SEQUENCE_NODE) {
        bad(r, node, "'kernels' is a list: '- files: ...'");
        return;
    }
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        struct peal_ci_entry entry = {0};
        read_entry(r, node_at(r, *item), &entry);
        if (out->entries.len == PEAL_CI_ENTRIES || !peal_vec_push(&out->entries, entry)) {
            bad(r, node, "more than %d entries", PEAL_CI_ENTRIES);
            return;
        }
    }
}

static void read_root(struct settings_reader *r, const yaml_node_t *root,
                      struct peal_ci_settings *out)
{
    static const char *const own[] = {"exclude", "run", "time", "kernels", NULL};
    if (root->type != YAML_MAPPING_NODE) {
        bad(r, root, "expected keys and values");
        return;
    }
    out->usual.pos = pos_of(r, root);
    const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
    for (; pair < root->data.mapping.pairs.top; pair++) {
        const char *key = key_of(r, root, pair);
        const yaml_node_t *value = node_at(r, pair->value);
        const struct peal_option *row = NULL;
        if (!key)
            continue;
        if (strcmp(key, "exclude") == 0)
            read_patterns(r, value, &out->exclude);
        else if (strcmp(key, "run") == 0)
            read_patterns(r, value, &out->run);
        else if (strcmp(key, "time") == 0)
            read_seconds(r, value, &out->usual.time);
        else if (strcmp(key, "kernels") == 0)
            read_entries(r, value, out);
        else if ((row = find_option(r, key)))
            read_option(r, value, &out->usual, row);
        else
            unknown(r, node_at(r, pair->key), key, own);
    }
}

enum peal_status peal_ci_settings_read(const struct peal_source *source,
                                       const struct peal_command *verify, struct peal_arena *arena,
                                       struct peal_diags *diags, struct peal_ci_settings *out)
{
    struct settings_reader r = {.source = source, .verify = verify, .arena = arena, .diags = diags};
    yaml_parser_t parser;
    *out = (struct peal_ci_settings){.usual = {.pos = {source, 1, 1, 0}}};
    if (source->len > PEAL_CI_SETTINGS_BYTES) {
        peal_diag_error(diags, (struct peal_pos){source, 1, 1, 0}, "larger than %d KiB",
                        PEAL_CI_SETTINGS_BYTES >> 10);
        return PEAL_INVALID;
    }
    if (!yaml_parser_initialize(&parser))
        return PEAL_NO_MEMORY;
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text, source->len);
    if (!yaml_parser_load(&parser, &r.document)) {
        struct peal_pos pos = {source, (uint32_t)parser.problem_mark.line + 1,
                               (uint32_t)parser.problem_mark.column + 1, 1};
        peal_diag_error(diags, pos, "%s", parser.problem ? parser.problem : "not YAML");
        yaml_parser_delete(&parser);
        return PEAL_INVALID;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&r.document);
    if (root) /* an empty file settles nothing */
        read_root(&r, root, out);
    yaml_document_delete(&r.document);
    yaml_parser_delete(&parser);
    return r.failed ? PEAL_INVALID : PEAL_OK;
}

void peal_ci_settings_release(struct peal_ci_settings *settings)
{
    peal_vec_release(&settings->entries);
}
