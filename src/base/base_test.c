/* SPDX-License-Identifier: Apache-2.0 */
/* The small containers of base. */
#include "base/sha256.h"
#include "base/base.h"
#include "base/tests/unit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(arena_stops_at_its_limit)
{
    struct peal_arena arena;
    peal_arena_init(&arena, 10000);
    size_t got = 0;
    while (got < 100000 && peal_arena_alloc(&arena, 100))
        got += 100;
    assert_true(got > 5000 && got <= 10000);
    assert_null(peal_arena_alloc(&arena, SIZE_MAX));
    peal_arena_release(&arena);
}

TEST(equal_names_intern_to_equal_pointers)
{
    struct peal_arena arena;
    struct peal_intern intern;
    peal_arena_init(&arena, 0);
    peal_intern_init(&intern, &arena);
    const char *first[1000];
    for (int i = 0; i < 1000; i++) {
        char name[16];
        int len = snprintf(name, sizeof name, "name%d", i);
        first[i] = peal_intern_text(&intern, name, (size_t)len);
    }
    for (int i = 0; i < 1000; i++) {
        char name[16];
        int len = snprintf(name, sizeof name, "name%d", i);
        assert_ptr_equal(first[i], peal_intern_text(&intern, name, (size_t)len));
    }
    peal_intern_release(&intern);
    peal_arena_release(&arena);
}

TEST(sizes_parse_and_format)
{
    static const struct {
        int line;
        const char *text;
        bool ok;
        uint64_t value;
    } rows[] = {
        {__LINE__, "0", true, 0},
        {__LINE__, "64M", true, 64 << 20},
        {__LINE__, "3k", true, 3072},
        {__LINE__, "", false, 0},
        {__LINE__, "K", false, 0},
        {__LINE__, "10GB", false, 0},
        {__LINE__, "-1", false, 0},
        {__LINE__, "99999999999999999999", false, 0},
        {__LINE__, "18446744073709551615G", false, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t value = 7;
        if (peal_size_parse(rows[i].text, &value) != rows[i].ok ||
            (rows[i].ok && value != rows[i].value))
            fail_msg("row at line %d", rows[i].line);
    }
    char buf[24];
    assert_true(peal_size_mul_capped(UINT64_MAX / 2, 3) == UINT64_MAX);
    assert_true(peal_size_mul_capped(7, 3) == 21);
    assert_true(peal_size_add_capped(UINT64_MAX, 3) == UINT64_MAX);
    assert_true(peal_size_add_capped(7, 3) == 10);
    assert_string_equal(peal_size_format(0, buf), "0");
    assert_string_equal(peal_size_format(1000, buf), "1000");
    assert_string_equal(peal_size_format(64 << 20, buf), "64M");
}

TEST(diagnostics_point_at_the_place)
{
    struct peal_source source = {"a.peal", "first\n  second line\n", 20};
    struct peal_diags diags;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    peal_diag_error(&diags, (struct peal_pos){&source, 2, 3, 6}, "bad '%s'", "second");
    peal_diag_note(&diags, (struct peal_pos){&source, 1, 1, 0}, "see here");
    peal_diags_print(&diags, false, &out);
    assert_string_equal(peal_text_get(&out), "a.peal:2:3: error: bad 'second'\n"
                                             "      second line\n"
                                             "      ^~~~~~\n"
                                             "a.peal:1:1: note: see here\n"
                                             "    first\n"
                                             "    ^\n");
    peal_text_release(&out);
    peal_diags_release(&diags);
}

TEST(diagnostics_fit_80_columns)
{
    static const char line[] =
        "let this_is_a_line = of_more_than_eighty_columns + and_what_is_wrong + "
        "stands_at_the_end_of_it";
    struct peal_source source = {"a.peal", line, sizeof line - 1};
    struct peal_diags diags;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    peal_diag_error(&diags, (struct peal_pos){&source, 1, 72, 8},
                    "a message that is longer than one line of a terminal goes on below its first "
                    "words\nits second line is short");
    peal_text_puts(&out, "peal check: ");
    peal_diags_print(&diags, false, &out);
    assert_string_equal(
        peal_text_get(&out),
        "peal check: a.peal:1:72: error: a message that is longer than one line of a\n"
        "  terminal goes on below its first words\n"
        "its second line is short\n"
        "     = of_more_than_eighty_columns + and_what_is_wrong + stands_at_the_end_of_it\n"
        "                                                         ^~~~~~~~\n");
    peal_text_release(&out);
    peal_diags_release(&diags);
}

TEST(diagnostics_keep_the_terminal_safe)
{
    static const char text[] = "\x1b[2J \xc3\xa9 \xff\xc2\x9b x\n";
    struct peal_source source = {"a.peal", text, sizeof text - 1};
    struct peal_source empty = {"b.peal", "", 0};
    struct peal_diags diags;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    peal_diag_error(&diags, (struct peal_pos){&source, 1, 13, 1}, "bad '\x1b[0m'");
    peal_diag_error(&diags, (struct peal_pos){&empty, 1, 1, 1}, "nothing here");
    peal_diags_print(&diags, false, &out);
    assert_string_equal(peal_text_get(&out), "a.peal:1:13: error: bad ' [0m'\n"
                                             "     [2J \xc3\xa9 ??? x\n"
                                             "               ^\n"
                                             "b.peal:1:1: error: nothing here\n");
    peal_text_release(&out);
    peal_diags_release(&diags);
}

TEST(the_name_that_was_meant_is_found)
{
    static const char *const names[] = {"verify", "version", "n", "sum", "root", NULL};
    static const struct {
        int line;
        const char *name, *meant;
    } rows[] = {
        {__LINE__, "verfy", "verify"}, {__LINE__, "vresion", "version"},
        {__LINE__, "sun", "sum"},      {__LINE__, "rot", "root"},
        {__LINE__, "m", NULL},         {__LINE__, "", NULL},
        {__LINE__, "roots", "root"},   {__LINE__, "frob", NULL},
        {__LINE__, "n", "n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *got = peal_nearest(rows[i].name, names);
        if ((got != NULL) != (rows[i].meant != NULL) || (got && strcmp(got, rows[i].meant) != 0))
            fail_msg("row at line %d: '%s'", rows[i].line, got ? got : "none");
    }
}

TEST(only_the_first_errors_are_kept)
{
    struct peal_diags diags;
    struct peal_text out = {0};
    peal_diags_init(&diags);
    for (int i = 0; i < PEAL_DIAG_LIMIT + 5; i++)
        peal_diag_error(&diags, (struct peal_pos){0}, "error %d", i);
    assert_int_equal(diags.list.len, PEAL_DIAG_LIMIT);
    peal_diags_print(&diags, false, &out);
    assert_non_null(strstr(peal_text_get(&out), "and 5 more errors\n"));
    peal_text_release(&out);
    peal_diags_release(&diags);
}

TEST(every_function_has_a_name_and_is_found_by_it)
{
    for (int i = 0; i < PEAL_FN_COUNT; i++) {
        enum peal_fn fn;
        const char *name = peal_fn_info((enum peal_fn)i)->name;
        assert_true(peal_fn_find(name, strlen(name), &fn));
        assert_int_equal(fn, i);
    }
    assert_true(peal_reduce_takes(PEAL_AND, PEAL_I32));
    assert_false(peal_reduce_takes(PEAL_AND, PEAL_F32));
    assert_false(peal_reduce_takes(PEAL_AVG, PEAL_I64));
}

TEST(test_text_folds)
{
    static const struct {
        int line;
        const char *text, *folded; /* at 10 columns, hang 2 */
    } rows[] = {
        {__LINE__, "short\n", "short\n"},
        {__LINE__, "0123456789\n", "0123456789\n"},
        {__LINE__, "one two three four\nend", "one two\n  three\n  four\nend"},
        {__LINE__, "  indented line\n", "  indented\n  line\n"},
        {__LINE__, "  averylongword fits\n", "  averylongword\n  fits\n"},
        {__LINE__, "\n\nab", "\n\nab"},
        {__LINE__, "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text text = {0};
        peal_text_puts(&text, "kept as it is ");
        size_t from = text.len;
        peal_text_puts(&text, rows[i].text);
        peal_text_fold(&text, from, 2, 10);
        if (strcmp(peal_text_get(&text) + from, rows[i].folded) != 0)
            fail_msg("line %d: '%s'", rows[i].line, peal_text_get(&text) + from);
        peal_text_release(&text);
    }
}

/* Colours take no columns, and where they are off nothing is written for them. */
TEST(test_text_tones)
{
    static const struct {
        bool colors;
        const char *folded;
    } rows[] = {
        {false, "it is\n  proved at\n  2 ranks"},
        {true, "it is\n  \033[32mproved\033[0m at\n  2 ranks"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_text text = {.colors = rows[i].colors};
        peal_text_puts(&text, "it is ");
        peal_text_toned(&text, PEAL_TONE_GOOD, "proved");
        assert_int_equal(peal_text_columns(peal_text_get(&text), text.len), 12);
        peal_text_puts(&text, " at 2 ranks");
        peal_text_fold(&text, 0, 2, 11);
        assert_string_equal(peal_text_get(&text), rows[i].folded);
        peal_text_release(&text);
    }
}

TEST(test_sha256_is_the_standard)
{
    static const struct {
        int line;
        const char *text, *digits;
    } rows[] = {
        {__LINE__, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {__LINE__, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {__LINE__, "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_sha256 s;
        char digits[PEAL_SHA256_HEX + 1];
        peal_sha256_begin(&s);
        for (const char *c = rows[i].text; *c; c++)
            peal_sha256_add(&s, c, 1);
        peal_sha256_end(&s, digits);
        if (strcmp(digits, rows[i].digits) != 0)
            fail_msg("line %d: %s", rows[i].line, digits);
    }
}

TEST(what_a_program_writes_is_read)
{
    static const struct {
        int line;
        const char *script;
        bool errors;
        uint32_t limit_ms;
        enum peal_status status;
        const char *said;
    } rows[] = {
        {__LINE__, "echo one; echo two >&2", false, 600000, PEAL_OK, "one\n"},
        {__LINE__, "echo one; echo two >&2; exit 3", true, 600000, PEAL_OK, "one\ntwo\n"},
        {__LINE__, "cat", false, 600000, PEAL_OK, ""},
        {__LINE__, "exec sleep 600", false, 1, PEAL_TIMEOUT, ""},
    };
    struct peal_text said = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const argv[] = {"sh", "-c", rows[i].script, NULL};
        const struct peal_child child = {
            .argv = argv, .input = -1, .errors = rows[i].errors, .limit_ms = rows[i].limit_ms};
        said.len = 0;
        enum peal_status status = peal_child_output(&child, &said);
        if (status != rows[i].status ||
            strcmp(said.len ? peal_text_get(&said) : "", rows[i].said) != 0)
            fail_msg("line %d: %d, '%s'", rows[i].line, (int)status, peal_text_get(&said));
    }
    const char *const missing[] = {"no-such-program-of-anyone", NULL};
    const struct peal_child child = {.argv = missing, .input = -1, .limit_ms = 600000};
    assert_int_equal(peal_child_output(&child, &said), PEAL_SYSTEM);
    peal_text_release(&said);
}

TEST(hashes_tell_lengths_seeds_and_bytes_apart)
{
    enum { LONGEST = 40 };
    unsigned char bytes[LONGEST] = {0};
    uint64_t seen[3 * (LONGEST + 1)];
    size_t n = 0;
    assert_int_equal(peal_hash_bytes(NULL, 0, 1), peal_hash_bytes(bytes, 0, 1));
    for (size_t len = 0; len <= LONGEST; len++) {
        seen[n++] = peal_hash_bytes(bytes, len, 1);
        seen[n++] = peal_hash_bytes(bytes, len, 2);
        if (len > 0) {
            bytes[len - 1] = 1;
            seen[n++] = peal_hash_bytes(bytes, len, 1);
            bytes[len - 1] = 0;
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    }
}

static uint64_t hash_square(const void *rows, uint32_t row)
{
    return ((const uint64_t *)rows)[row] % 7; /* many collide */
}

TEST(an_index_finds_every_row_and_no_other)
{
    enum { ROWS = 300 };
    uint64_t rows[ROWS];
    struct peal_index index = {0};
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = (uint64_t)i * i;
    for (uint32_t i = 0; i < ROWS; i++) {
        assert_true(peal_index_reserve(&index, hash_square, rows));
        size_t at = peal_index_begin(&index, hash_square(rows, i));
        for (; peal_index_is_used(&index, at); at = peal_index_next(&index, at))
            assert_true(rows[peal_index_row(&index, at)] != rows[i]); /* not there yet */
        peal_index_put(&index, at, i);
        assert_true(index.count * 2 <= index.cap);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        size_t at = peal_index_begin(&index, hash_square(rows, i));
        while (peal_index_is_used(&index, at) && peal_index_row(&index, at) != i)
            at = peal_index_next(&index, at);
        assert_true(peal_index_is_used(&index, at));
    }
    for (uint32_t left = ROWS; left > 0; left--) {
        uint32_t gone = ROWS * 31 % left;
        peal_index_remove(&index, gone, left - 1, hash_square, rows);
        rows[gone] = rows[left - 1];
        for (uint32_t i = 0; i + 1 < left; i++) {
            size_t at = peal_index_begin(&index, hash_square(rows, i));
            while (peal_index_is_used(&index, at) && peal_index_row(&index, at) != i)
                at = peal_index_next(&index, at);
            assert_true(peal_index_is_used(&index, at));
        }
    }
    assert_int_equal(index.count, 0);
    peal_index_clear(&index);
    assert_false(peal_index_is_used(&index, peal_index_begin(&index, 0)));
    peal_index_release(&index);
}

/* y of b = (b ^ y) * K; b ^= b >> 31, as peal_hash_bytes mixes the second word of 16. */
static uint64_t unmix(uint64_t mixed, uint64_t b)
{
    const uint64_t k = UINT64_C(0xc2b2ae3d27d4eb4f);
    uint64_t inverse = k; /* modulo 2^64, by Newton's method */
    for (int i = 0; i < 6; i++)
        inverse *= 2 - k * inverse;
    mixed ^= mixed >> 31 ^ mixed >> 62;
    return (mixed * inverse) ^ b;
}

static uint64_t mix(uint64_t value, uint64_t k, int shift)
{
    value *= k;
    return value ^ value >> shift;
}

/* Two keys of 16 bytes with one hash: the words of the second follow from those of the first. */
static void collide(const uint64_t one[2], uint64_t two[2], uint64_t seed)
{
    const uint64_t k = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t a = peal_hash_u64(16, seed ^ UINT64_C(0x243f6a8885a308d3));
    uint64_t b = seed ^ UINT64_C(0x13198a2e03707344);
    uint64_t first = peal_hash_u64(mix(a ^ one[0], k, 29), seed);
    uint64_t second = peal_hash_u64(mix(a ^ two[0], k, 29), seed);
    uint64_t wanted = mix(b ^ one[1], UINT64_C(0xc2b2ae3d27d4eb4f), 31) ^ first ^ second;
    two[1] = unmix(wanted, b);
}

TEST(keys_that_hash_alike_are_still_two)
{
    struct peal_keys keys = {0};
    uint64_t one[2] = {17, 4}, two[2] = {18, 0};
    collide(one, two, 3); /* the seed of keys.c */
    assert_true(peal_hash_bytes(one, sizeof one, 3) == peal_hash_bytes(two, sizeof two, 3));
    assert_int_equal(peal_keys_find(&keys, one, sizeof one), UINT32_MAX);
    assert_true(peal_keys_add(&keys, one, sizeof one));
    assert_int_equal(peal_keys_find(&keys, one, sizeof one), 0);
    assert_int_equal(peal_keys_find(&keys, two, sizeof two), UINT32_MAX);
    assert_true(peal_keys_add(&keys, two, sizeof two));
    assert_int_equal(peal_keys_find(&keys, two, sizeof two), 1);
    assert_int_equal(peal_keys_find(&keys, one, sizeof one), 0);
    for (uint64_t i = 2; i < 500; i++) {
        uint64_t key[3] = {i, i * i, 0};
        assert_true(peal_keys_add(&keys, key, i % 2 ? 16 : 24));
    }
    for (uint64_t i = 2; i < 500; i++) {
        uint64_t key[3] = {i, i * i, 0};
        assert_int_equal(peal_keys_find(&keys, key, i % 2 ? 16 : 24), i);
        assert_int_equal(peal_keys_find(&keys, key, i % 2 ? 24 : 16), UINT32_MAX);
    }
    peal_keys_clear(&keys);
    assert_int_equal(peal_keys_find(&keys, one, sizeof one), UINT32_MAX);
    peal_keys_release(&keys);
}

TEST(the_clock_does_not_go_back)
{
    uint64_t start = peal_now_ns(), last = start;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = peal_now_ns();
        assert_true(now >= last);
        last = now;
    }
    assert_true(peal_ms_since(start) >= 0);
    assert_true(peal_now_ms() >= start / 1000000);
}

static void count_piece(void *context, size_t i)
{
    atomic_fetch_add((atomic_int *)context + i, 1);
}

TEST(parallel_work_is_done_once_by_any_number_of_threads)
{
    static const uint32_t workers[] = {0, 1, 2, 7, 1000};
    for (size_t w = 0; w < sizeof workers / sizeof *workers; w++) {
        for (size_t count = 0; count <= 300; count += 150) {
            atomic_int done[300] = {0};
            peal_parallel(workers[w], count, count_piece, done);
            for (size_t i = 0; i < 300; i++)
                assert_int_equal(atomic_load(&done[i]), i < count);
        }
    }
}

/* The rows of collectives.def: what shares memory in place follows from the sides. */
TEST(collectives_share_what_their_sides_allow)
{
    for (int i = PEAL_CONTRACT_NONE + 1; i < PEAL_CONTRACT_COUNT; i++) {
        enum peal_contract contract = (enum peal_contract)i, found;
        const struct peal_contract_info *c = peal_contract_info(contract);
        bool gathers = c->in == PEAL_SIDE_BLOCK && peal_side_has_blocks(c->out);
        bool scatters = c->out == PEAL_SIDE_BLOCK && peal_side_has_blocks(c->in);
        bool roots = peal_side_is_roots(c->in) || peal_side_is_roots(c->out);
        assert_int_equal(peal_contract_gathers(contract), gathers);
        assert_int_equal(peal_contract_scatters(contract), scatters);
        assert_true(!roots || c->has_root);
        assert_true((c->in == PEAL_SIDE_NONE) == (c->out == PEAL_SIDE_NONE));
        assert_true(peal_contract_find(c->name, strlen(c->name), &found) && found == contract);
    }
    assert_true(peal_contract_result_is_roots(PEAL_CONTRACT_REDUCE));
    assert_false(peal_contract_result_is_roots(PEAL_CONTRACT_BROADCAST));
    assert_true(peal_contract_parts_on_root(PEAL_CONTRACT_SCATTER));
    assert_false(peal_contract_parts_on_root(PEAL_CONTRACT_ALLGATHER));
}

TEST(rates_are_exact)
{
    struct peal_rate rate, three;
    const char *why;
    assert_true(peal_rate_parse("48", &rate, &why)); /* 125 / 6 picoseconds per byte */
    assert_int_equal(rate.num, 125);
    assert_int_equal(rate.den, 6);
    assert_int_equal(peal_rate_time(rate, 6), 125);
    assert_int_equal(peal_rate_time(rate, 7), 146);
    assert_true(peal_rate_bundle(rate, 3, &three));
    assert_int_equal(peal_rate_compare(three, peal_rate_reduced(250, 36)), 0);
    assert_true(peal_rate_compare(three, rate) < 0);
    assert_false(peal_rate_bundle((struct peal_rate){1, UINT64_MAX}, 2, &three));
}

int main(void)
{
    return unit_run();
}
