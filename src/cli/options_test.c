/* SPDX-License-Identifier: Apache-2.0 */
/* Options are parsed by their table, and errors are reported by kind. */
#include "cli/options.h"
#include "base/tests/unit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct sample {
    bool json;
    int64_t root;
    uint64_t size;
    struct peal_ints ranks;
    const char *file;
    struct peal_pairs set;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    int wait;
};

#define AT(member) offsetof(struct sample, member)
static const struct peal_option table[] = {
    {"json", 'j', PEAL_OPTION_FLAG, AT(json), NULL, "print JSON", 0, 0},
    {"root", 'r', PEAL_OPTION_INT, AT(root), "R", "the root", -1, 15},
    {"size", 0, PEAL_OPTION_SIZE, AT(size), "B", "bytes", 0, 0},
    {"ranks", 'n', PEAL_OPTION_LIST, AT(ranks), "P", "ranks", 1, 64},
    {"file", 0, PEAL_OPTION_STRING, AT(file), "FILE", "a file", 0, 0},
    {"set", 0, PEAL_OPTION_PAIRS, AT(set), "K=V", "a pair", 0, 0},
    {"dtype", 0, PEAL_OPTION_DTYPE, AT(dtype), "T", "type", 0, 0},
    {"op", 0, PEAL_OPTION_REDUCE, AT(reduce), "OP", "op", 0, 0},
    {"wait", 0, PEAL_OPTION_CHOICE, AT(wait), "spin|yield|futex", "how", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

enum { MAX_WORDS = 24 };

struct parsed {
    struct sample sample;
    struct peal_args args;
    struct peal_text error;
    struct peal_arena arena;
    char line[256];
    char *words[MAX_WORDS];
    bool good;
};

/* Parses a command line whose words are separated by blanks. */
static void parse(struct parsed *parsed, const char *line, bool stops_at_arg)
{
    *parsed = (struct parsed){.good = false};
    peal_arena_init(&parsed->arena, 0);
    snprintf(parsed->line, sizeof parsed->line, "%s", line);
    int count = 0;
    char *rest;
    for (char *word = strtok_r(parsed->line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < MAX_WORDS);
        parsed->words[count++] = word;
    }
    parsed->good = peal_options_parse(table, stops_at_arg, count, parsed->words, &parsed->sample,
                                      &parsed->arena, &parsed->args, &parsed->error);
}

static void release(struct parsed *parsed)
{
    peal_text_release(&parsed->error);
    peal_arena_release(&parsed->arena);
}

TEST(values_reach_their_fields)
{
    struct parsed p;
    parse(&p,
          "a --json -r -1 -size=8K -n2..4 --file=x=y --set a=1 --set b= --dtype bf16 --op max "
          "--wait yield",
          false);
    assert_string_equal(peal_text_get(&p.error), "");
    assert_true(p.good);
    assert_true(p.sample.json);
    assert_int_equal(p.sample.root, -1);
    assert_int_equal(p.sample.size, 8192);
    assert_int_equal(p.sample.ranks.len, 3);
    assert_int_equal(p.sample.ranks.at[2], 4);
    assert_string_equal(p.sample.file, "x=y");
    assert_int_equal(p.sample.set.len, 2);
    assert_string_equal(p.sample.set.at[0].key, "a");
    assert_string_equal(p.sample.set.at[1].value, "");
    assert_int_equal(p.sample.dtype, PEAL_BF16);
    assert_int_equal(p.sample.reduce, PEAL_MAX);
    assert_int_equal(p.sample.wait, 1);
    assert_int_equal(p.args.len, 1);
    release(&p);
}

TEST(what_follows_the_program_belongs_to_it)
{
    struct parsed p;
    parse(&p, "-j prog -j --nonsense", true);
    assert_true(p.good);
    assert_int_equal(p.args.len, 3);
    release(&p);
    parse(&p, "-- -j", false);
    assert_true(p.good);
    assert_false(p.sample.json);
    assert_int_equal(p.args.len, 1);
    release(&p);
}

TEST(wrong_options_are_explained)
{
    static const struct {
        int line;
        const char *words;
        const char *error;
    } rows[] = {
        {__LINE__, "--jsno", "unknown option '--jsno'; did you mean '--json'?"},
        {__LINE__, "--frobnicate=3", "unknown option '--frobnicate'"},
        {__LINE__, "-x", "unknown option '-x'"},
        {__LINE__, "--json=1", "'--json' takes no value"},
        {__LINE__, "--root", "'--root' needs a value: R"},
        {__LINE__, "--root x", "--root: 'x' is not a number"},
        {__LINE__, "--root 16", "--root: 16 is not in -1..15"},
        {__LINE__, "--size 8Q", "--size: '8Q' is not a size: a number and K, M or G"},
        {__LINE__, "-n 0..4", "--ranks: 0 is not in 1..64"},
        {__LINE__, "-n 4..2", "--ranks: the range from 4 to 2 is empty"},
        {__LINE__, "-n 0..4*2", "--ranks: the range from 0 to 4 is endless"},
        {__LINE__, "-n 2..", "--ranks: '2..' is not a range such as 2..16"},
        {__LINE__, "-n ..4", "--ranks: '..4' is not a range such as 2..16"},
        {__LINE__, "-n 2..4..8", "--ranks: '4..8' is not a number"},
        {__LINE__, "-n 2,,3", "--ranks: '' is not a number"},
        {__LINE__, "-n 2..8*1", "--ranks: '1' is not a step"},
        {__LINE__, "-n 1..1000000", "--ranks: more than 65536 values"},
        {__LINE__, "--set x", "--set: 'x' is not KEY=VALUE"},
        {__LINE__, "--dtype f33", "--dtype: 'f33' is not a data type; did you mean 'f32'?"},
        {__LINE__, "--wait block", "--wait: 'block' is not a choice: spin yield futex"},
        {__LINE__, "--size 99999999999999999999", "--size: '99999999999999999999' is too large"},
        {__LINE__, "--root -99999999999G", "--root: '-99999999999G' is too large"},
        {__LINE__, "-n 9223372036854775807..9223372036854775807+9223372036854775807", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct parsed p;
        parse(&p, rows[i].words, false);
        if (p.good || (rows[i].error && strcmp(peal_text_get(&p.error), rows[i].error) != 0))
            fail_msg("line %d: '%s'", rows[i].line, peal_text_get(&p.error));
        release(&p);
    }
}

TEST(code_is_wrapped_so_that_it_means_the_same)
{
    static const struct {
        int line;
        const char *code, *wrapped;
    } rows[] = {
        {__LINE__, "short\n", "short\n"},
        {__LINE__, "kernel k(in x: T[n], out y: T[n]) {",
         "kernel k(in x: T[n],\n        out y:\n        T[n]) {"},
        {__LINE__, "  y[a + 1] = x[bb + 1]", "  y[a + 1] =\n          x[bb + 1]"},
        {__LINE__, "  f(aaaaaaa, bbbbbb)  // c", "  f(aaaaaaa, bbbbbb)\n          // c"},
        {__LINE__, "  f(aaaaaaa, bbbbbbb, c)  // d",
         "  f(aaaaaaa,\n          bbbbbbb,\n          c)  // d"},
        {__LINE__, "  a = bbbb  // from here", "  a = bbbb\n          // from\n          // here"},
        {__LINE__, "  // one two three four", "  // one two three\n  // four"},
        {__LINE__, "assert c, \"a long // message\"", "assert c,\n        \"a long // message\""},
        {__LINE__, "    a_word_that_has_no_blank", "    a_word_that_has_no_blank"},
        {__LINE__, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text out = {0};
        peal_code_wrap(rows[i].code, 20, &out);
        if (strcmp(peal_text_get(&out), rows[i].wrapped) != 0)
            fail_msg("line %d: '%s'", rows[i].line, peal_text_get(&out));
        peal_text_release(&out);
    }
}

TEST(ranges_and_lists_give_their_values)
{
    static const struct {
        int line;
        const char *text;
        int64_t values[8];
        size_t count;
    } rows[] = {
        {__LINE__, "4", {4}, 1},
        {__LINE__, "2..5", {2, 3, 4, 5}, 4},
        {__LINE__, "2,3,8", {2, 3, 8}, 3},
        {__LINE__, "1..2,7", {1, 2, 7}, 3},
        {__LINE__, "0..10+4", {0, 4, 8}, 3},
        {__LINE__, "8..1K*8", {8, 64, 512}, 3},
        {__LINE__, "-2..1", {-2, -1, 0, 1}, 4},
        {__LINE__, "9223372036854775806..9223372036854775807", {INT64_MAX - 1, INT64_MAX}, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_arena arena;
        peal_arena_init(&arena, 0);
        struct peal_text error = {0};
        struct peal_ints ints;
        bool good = peal_ints_parse(rows[i].text, &arena, &ints, &error);
        if (!good || ints.len != rows[i].count ||
            memcmp(ints.at, rows[i].values, ints.len * sizeof *ints.at) != 0)
            fail_msg("line %d: '%s' %s", rows[i].line, rows[i].text, peal_text_get(&error));
        peal_text_release(&error);
        peal_arena_release(&arena);
    }
}

TEST(a_list_that_does_not_fit_into_memory_says_so)
{
    size_t failures = 0;
    for (size_t limit = 4096; limit <= 65536; limit += 4096) {
        struct peal_arena arena;
        peal_arena_init(&arena, limit);
        struct peal_text error = {0};
        struct peal_ints ints;
        if (!peal_ints_parse("1..4000", &arena, &ints, &error)) {
            failures++;
            assert_string_equal(peal_text_get(&error), "out of memory");
        }
        peal_text_release(&error);
        peal_arena_release(&arena);
    }
    assert_true(failures > 0);
}

TEST(help_fits_80_columns)
{
    static const struct peal_option wordy[] = {
        {"a-very-long-option-name", 'x', PEAL_OPTION_STRING, 0, "SOMETHING",
         "a help text that is so long that it has to be broken somewhere before column eighty, "
         "and then once more for good measure",
         0, 0},
        {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
    };
    struct peal_text text = {0};
    peal_options_help(wordy, &text);
    peal_help_wrap("Words words words words words words words words words words words words words "
                   "words words.\n\n  as it is\nafter",
                   &text);
    const char *at = peal_text_get(&text);
    while (*at) {
        size_t len = strcspn(at, "\n");
        assert_true(len <= 80);
        at += len + (at[len] == '\n');
    }
    assert_non_null(strstr(peal_text_get(&text), "\n\n  as it is\nafter\n"));
    peal_text_release(&text);
}

int main(void)
{
    return unit_run();
}
