/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing arguments by a table of options.
 *
 * A row says where in the command's struct its value goes and how it is read; help, completion and
 * manual pages read the same rows. The first error ends the parse with one message, which names the
 * option as it was written and, for an unknown name, the nearest that exists. Parsed values live in
 * the arena or in argv, so nothing is freed here.
 */
#include "cli/options.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct option_parser {
    const struct peal_option *table;
    char *target;
    struct peal_arena *arena;
    struct peal_text *error;
};

/* A decimal with sign and K, M, G. */
static bool read_int(const char *text, int64_t *out)
{
    bool negative = *text == '-';
    uint64_t size;
    if (!peal_size_parse(text + negative, &size) || size > INT64_MAX)
        return false;
    *out = negative ? -(int64_t)size : (int64_t)size;
    return true;
}

/* Reports why a text is not a number: it should have been `expected`, or it is a number that is too
 * large. */
static bool reject_number(const char *text, const char *expected, struct peal_text *error)
{
    const char *digits = text + (*text == '-');
    size_t len = strspn(digits, "0123456789");
    const char *unit = digits + len;
    bool is_number = len && (!*unit || (strchr("KkMmGg", *unit) && !unit[1]));
    if (is_number)
        peal_text_printf(error, "'%s' is too large", text);
    else
        peal_text_printf(error, "'%s' is not %s", text, expected);
    return false;
}

struct option_range {
    int64_t first, last, step;
    bool multiplies; /* the step is a factor; false: it is added */
};

/* One element of a list: "4", "2..16", "0..64+8", "8..64K*2". */
static bool read_range(const char *text, struct peal_arena *arena, struct option_range *out,
                       struct peal_text *error)
{
    const char *dots = strstr(text, "..");
    struct option_range range = {.step = 1};
    if (!dots) {
        if (!read_int(text, &range.first))
            return reject_number(text, "a number", error);
        range.last = range.first;
        *out = range;
        return true;
    }
    size_t last_len = strcspn(dots + 2, "+*");
    const char *mark = dots + 2 + last_len;
    char *first = peal_arena_copy(arena, text, (size_t)(dots - text));
    char *last = peal_arena_copy(arena, dots + 2, last_len);
    range.multiplies = *mark == '*';
    if (*mark && (!read_int(mark + 1, &range.step) || range.step < (range.multiplies ? 2 : 1))) {
        peal_text_printf(error, "'%s' is not a step", mark + 1);
        return false;
    }
    if (!first || !last) {
        peal_text_puts(error, "out of memory");
        return false;
    }
    if (!*first || !*last) {
        peal_text_printf(error, "'%s' is not a range such as 2..16", text);
        return false;
    }
    if (!read_int(first, &range.first))
        return reject_number(first, "a number", error);
    if (!read_int(last, &range.last))
        return reject_number(last, "a number", error);
    bool never_grows = range.multiplies && range.first < 1;
    if (range.last < range.first || (never_grows && range.last != range.first)) {
        peal_text_printf(error, "the range from %" PRId64 " to %" PRId64 " is %s", range.first,
                         range.last, never_grows ? "endless" : "empty");
        return false;
    }
    *out = range;
    return true;
}

static bool add_range(const struct option_range *range, struct peal_ints *values,
                      struct peal_text *error)
{
    for (int64_t at = range->first;;) {
        if (values->len == PEAL_OPTION_MAX_VALUES) {
            peal_text_printf(error, "more than %d values", PEAL_OPTION_MAX_VALUES);
            return false;
        }
        values->at[values->len++] = at;
        int64_t next;
        bool overflows = range->multiplies ? __builtin_mul_overflow(at, range->step, &next)
                                           : __builtin_add_overflow(at, range->step, &next);
        if (overflows || next > range->last)
            return true;
        at = next;
    }
}

/* The elements of a list, separated by commas, which are overwritten. */
static bool read_ranges(char *list, struct peal_arena *arena, struct peal_ints *values,
                        struct peal_text *error)
{
    for (char *one = strsep(&list, ","); one; one = strsep(&list, ",")) {
        struct option_range range = {0};
        if (!read_range(one, arena, &range, error) || !add_range(&range, values, error))
            return false;
    }
    return true;
}

bool peal_ints_parse(const char *text, struct peal_arena *arena, struct peal_ints *out,
                     struct peal_text *error)
{
    char *copy = peal_arena_copy(arena, text, strlen(text));
    struct peal_ints values = {
        .at = malloc(sizeof(int64_t) * PEAL_OPTION_MAX_VALUES),
    };
    bool good = false;
    if (!copy || !values.at) {
        peal_text_puts(error, "out of memory");
        goto free_values;
    }
    if (!read_ranges(copy, arena, &values, error))
        goto free_values;
    int64_t *kept = peal_arena_alloc(arena, values.len * sizeof(int64_t));
    if (!kept) {
        peal_text_puts(error, "out of memory");
        goto free_values;
    }
    memcpy(kept, values.at, values.len * sizeof(int64_t));
    out->at = kept;
    out->len = values.len;
    good = true;
free_values:
    free(values.at);
    return good;
}

static bool in_bounds(const struct option_parser *parser, const struct peal_option *option,
                      int64_t value)
{
    bool unlimited = option->lowest == 0 && option->highest == 0;
    int64_t highest = unlimited ? INT64_MAX : option->highest;
    if (value >= option->lowest && value <= highest)
        return true;
    if (highest == INT64_MAX)
        peal_text_printf(parser->error, "%" PRId64 " is below %" PRId64, value, option->lowest);
    else
        peal_text_printf(parser->error, "%" PRId64 " is not in %" PRId64 "..%" PRId64, value,
                         option->lowest, highest);
    return false;
}

static bool read_list(const struct option_parser *parser, const struct peal_option *option,
                      const char *text, struct peal_ints *out)
{
    *out = (struct peal_ints){0};
    if (strcmp(text, "all") == 0 && strcmp(option->value, PEAL_OPTION_OR_ALL) == 0)
        return out->all = true;
    if (!peal_ints_parse(text, parser->arena, out, parser->error))
        return false;
    for (size_t i = 0; i < out->len; i++) {
        if (!in_bounds(parser, option, out->at[i]))
            return false;
    }
    return true;
}

static bool read_pair(const struct option_parser *parser, const char *text,
                      struct peal_pairs *pairs)
{
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        peal_text_printf(parser->error, "'%s' is not KEY=VALUE", text);
        return false;
    }
    /* There are only a few pairs: a new array for each is simplest, and the arena frees them
     * all. */
    struct peal_pair *grown = peal_arena_alloc(parser->arena, (pairs->len + 1) * sizeof *grown);
    char *key = peal_arena_copy(parser->arena, text, (size_t)(equals - text));
    if (!grown || !key) {
        peal_text_puts(parser->error, "out of memory");
        return false;
    }
    if (pairs->len)
        memcpy(grown, pairs->at, pairs->len * sizeof *grown);
    grown[pairs->len] = (struct peal_pair){key, equals + 1};
    pairs->at = grown;
    pairs->len++;
    return true;
}

static bool reject_word(const struct option_parser *parser, const char *text, const char *kind,
                        const char *const *words)
{
    const char *near = peal_nearest(text, words);
    peal_text_printf(parser->error, "'%s' is not a %s", text, kind);
    if (near) {
        peal_text_printf(parser->error, "; did you mean '%s'?", near);
        return false;
    }
    peal_text_puts(parser->error, ":");
    for (; *words; words++)
        peal_text_printf(parser->error, " %s", *words);
    return false;
}

static bool read_dtype(const struct option_parser *parser, const char *text, enum peal_dtype *out)
{
    if (peal_dtype_find(text, strlen(text), out))
        return true;
    const char *words[PEAL_DTYPES + 1] = {NULL};
    for (int i = 0; i < PEAL_DTYPES; i++)
        words[i] = peal_dtype_name((enum peal_dtype)i);
    return reject_word(parser, text, "data type", words);
}

static bool read_reduce(const struct option_parser *parser, const char *text,
                        enum peal_reduction *out)
{
    if (peal_reduce_find(text, strlen(text), out))
        return true;
    const char *words[PEAL_REDUCTIONS + 1] = {NULL};
    for (int i = 0; i < PEAL_REDUCTIONS; i++)
        words[i] = peal_reduce_name((enum peal_reduction)i);
    return reject_word(parser, text, "reduce operation", words);
}

/* User-defined ones are checked later, when the kernel is known. */
static void read_operation(const char *text, struct peal_operation *out)
{
    *out = (struct peal_operation){.given = true};
    if (peal_reduce_find(text, strlen(text), &out->reduce))
        return;
    *out = (struct peal_operation){PEAL_USER_REDUCTION, text, true};
}

static bool read_choice(const struct option_parser *parser, const struct peal_option *option,
                        const char *text, int *out)
{
    enum { MAX_WORDS = 32 };
    const char *words[MAX_WORDS + 1] = {NULL};
    int count = 0;
    char *copy = peal_arena_copy(parser->arena, option->value, strlen(option->value));
    char *rest = NULL;
    for (char *word = copy ? strtok_r(copy, "|", &rest) : NULL; word && count < MAX_WORDS;
         word = strtok_r(NULL, "|", &rest)) {
        if (strcmp(word, text) == 0) {
            *out = count;
            return true;
        }
        words[count++] = word;
    }
    return reject_word(parser, text, "choice", words);
}

static bool read_value(const struct option_parser *parser, const struct peal_option *option,
                       const char *text)
{
    void *field = parser->target + option->offset;
    switch (option->kind) {
    case PEAL_OPTION_FLAG:
        *(bool *)field = true;
        return true;
    case PEAL_OPTION_INT: {
        int64_t value;
        if (!read_int(text, &value))
            return reject_number(text, "a number", parser->error);
        if (!in_bounds(parser, option, value))
            return false;
        *(int64_t *)field = value;
        return true;
    }
    case PEAL_OPTION_SIZE:
        if (peal_size_parse(text, (uint64_t *)field))
            return true;
        return reject_number(text, "a size: a number and K, M or G", parser->error);
    case PEAL_OPTION_LIST:
        return read_list(parser, option, text, field);
    case PEAL_OPTION_STRING:
        *(const char **)field = text;
        return true;
    case PEAL_OPTION_PAIRS:
        return read_pair(parser, text, field);
    case PEAL_OPTION_DTYPE:
        return read_dtype(parser, text, field);
    case PEAL_OPTION_REDUCE:
        return read_reduce(parser, text, field);
    case PEAL_OPTION_OPERATION:
        read_operation(text, field);
        return true;
    case PEAL_OPTION_CHOICE:
        return read_choice(parser, option, text, field);
    }
    return false;
}

static const struct peal_option *find_long(const struct peal_option *table, const char *name,
                                           size_t len)
{
    for (; peal_option_exists(table); table++) {
        if (strlen(table->name) == len && memcmp(table->name, name, len) == 0)
            return table;
    }
    return NULL;
}

static const struct peal_option *find_letter(const struct peal_option *table, char letter)
{
    for (; peal_option_exists(table); table++) {
        if (table->letter == letter)
            return table;
    }
    return NULL;
}

static void report_unknown(const struct option_parser *parser, const char *arg)
{
    enum { MAX_NAMES = 64 };
    const char *names[MAX_NAMES + 1] = {NULL};
    int count = 0;
    for (const struct peal_option *row = parser->table;
         peal_option_exists(row) && count < MAX_NAMES; row++)
        names[count++] = row->name;
    size_t len = strcspn(arg, "=");
    char *word = peal_arena_copy(parser->arena, arg, len);
    peal_text_printf(parser->error, "unknown option '%s'", word ? word : arg);
    const char *near = NULL;
    if (word && strncmp(word, "--", 2) == 0)
        near = peal_nearest(word + 2, names);
    if (near)
        peal_text_printf(parser->error, "; did you mean '--%s'?", near);
}

/* Reads the option at argv[0]. Returns how many arguments it took, 0 on error. */
static int read_option(const struct option_parser *parser, int argc, char **argv)
{
    const char *arg = argv[0];
    /* a long name may have a single dash: -np */
    const char *name = arg[1] == '-' ? arg + 2 : arg + 1;
    size_t name_len = strcspn(name, "=");
    const struct peal_option *option = find_long(parser->table, name, name_len);
    bool is_long = option || arg[1] == '-';
    if (!is_long)
        option = find_letter(parser->table, arg[1]);
    if (!option) {
        report_unknown(parser, arg);
        return 0;
    }
    const char *rest = is_long ? name + name_len : arg + 2;
    const char *value = NULL;
    if (*rest != '\0')
        value = is_long ? rest + 1 : rest;
    int taken = 1;
    if (option->kind == PEAL_OPTION_FLAG) {
        if (value) {
            peal_text_printf(parser->error, "'--%s' takes no value", option->name);
            return 0;
        }
    } else if (!value) {
        if (argc < 2) {
            peal_text_printf(parser->error, "'--%s' needs a value: %s", option->name,
                             option->value);
            return 0;
        }
        value = argv[1];
        taken = 2;
    }
    struct peal_text why = {0};
    struct option_parser inner = *parser;
    inner.error = &why;
    if (!read_value(&inner, option, value)) {
        peal_text_printf(parser->error, "--%s: %s", option->name, peal_text_get(&why));
        taken = 0;
    }
    peal_text_release(&why);
    return taken;
}

bool peal_options_parse(const struct peal_option *table, bool stops_at_arg, int argc, char **argv,
                        void *target, struct peal_arena *arena, struct peal_args *args,
                        struct peal_text *error)
{
    struct option_parser parser = {table, target, arena, error};
    args->at = peal_arena_alloc(arena, ((size_t)argc + 1) * sizeof *args->at);
    args->len = 0;
    if (!args->at) {
        peal_text_puts(error, "out of memory");
        return false;
    }
    bool only_args = stops_at_arg && !table; /* it has no options: all are arguments */
    for (int i = 0; i < argc;) {
        bool is_option = !only_args && argv[i][0] == '-' && argv[i][1] != '\0';
        if (is_option && strcmp(argv[i], "--") == 0) {
            only_args = true;
            i++;
        } else if (is_option) {
            int taken = read_option(&parser, argc - i, argv + i);
            if (!taken)
                return false;
            i += taken;
        } else {
            only_args = only_args || stops_at_arg;
            args->at[args->len++] = argv[i++];
        }
    }
    return true;
}
