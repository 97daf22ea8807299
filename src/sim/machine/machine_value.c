/* SPDX-License-Identifier: Apache-2.0 */
/* Machine values: what the words of a machine file become, by the table machine.def. */
#include "sim/machine/machine_value.h"

#include "sim/machine/machine_yaml.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { COUNT, PAIR, RATE, NS, CYCLE, WORD, BOOL, TEXT, AUTO, CURVE };

struct row {
    const char *path;
    size_t offset;
    enum kind kind;
    const char *fallback;
    uint64_t min, max;
    const char *words;
    const char *meaning;
};

static const struct row rows[] = {
#define KEY(ID, path, field, kind, fallback, min, max, words, meaning)                             \
    {path, offsetof(struct peal_machine_keys, field), kind, fallback, min, max, words, meaning},
#include "sim/machine/machine.def"
};

const char *peal_machine_key_path(enum peal_machine_key key)
{
    return rows[key].path;
}

uint64_t peal_machine_products(const struct peal_machine_keys *keys, enum peal_dtype dtype)
{
    uint64_t scale = 4, size = peal_dtype_size(dtype), rate = keys->math_products;
    if (!rate && keys->math_lanes[dtype])
        return keys->math_lanes[dtype];
    if (!rate)
        rate = keys->math_lanes[PEAL_F32];
    rate = rate * scale / size;
    if (!rate)
        return 1;
    return rate;
}

static bool parse_count(const struct row *row, const char *text, uint64_t *out, const char **why)
{
    uint64_t value = 0;
    size_t len = strlen(text);
    *why = "expected a whole number without a unit";
    if (len == 0 || len > 19)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (uint64_t)(text[i] - '0');
    }
    if (value < row->min || value > row->max) {
        *why = NULL; /* the message gives the range */
        return false;
    }
    *out = value;
    return true;
}

/* An algorithm's name, or a file with a kernel. */
static bool is_algorithm(const char *text, size_t len)
{
    static const char ending[] = ".peal";
    size_t end = sizeof ending - 1;
    if (len > end && len < 1024 && strncmp(text + len - end, ending, end) == 0)
        return strcspn(text, " \t\n\"'#") >= len;
    return len > 0 && len <= 40 && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") >= len;
}

/* Several, with or without the collective that each is for: "allreduce=ring,broadcast=b.peal". */
static bool are_algorithms(const char *text)
{
    enum { MAX_BYTES = 4096 };
    if (strlen(text) >= MAX_BYTES)
        return false;
    for (;;) {
        size_t len = strcspn(text, ","), name = strcspn(text, "=,");
        if (name < len) {
            if (name == 0 || strspn(text, "abcdefghijklmnopqrstuvwxyz_") != name)
                return false;
            text += name + 1;
            len -= name + 1;
        }
        if (!is_algorithm(text, len))
            return false;
        if (text[len] == '\0')
            return true;
        text += len + 1;
    }
}

/* "4K:31 64K:24.5", or "none". */
static bool parse_curve(const char *text, struct peal_machine_curve *out, const char **why)
{
    struct peal_machine_curve curve = {0};
    if (strcmp(text, "none") == 0) {
        *out = curve;
        return true;
    }
    for (const char *at = text; *at;) {
        char bytes[24], rate[24];
        int used = 0;
        *why = "expected GB/s by bytes, such as 4K:31 64K:24.5, at most 16, bytes rising";
        if (curve.count == PEAL_MACHINE_CURVE_POINTS ||
            sscanf(at, " %23[0-9KMG]:%23[0-9.]%n", bytes, rate, &used) != 2 || used == 0)
            return false;
        uint64_t *end = &curve.at[curve.count].bytes;
        if (!peal_size_parse(bytes, end) ||
            (curve.count && *end <= curve.at[curve.count - 1].bytes) ||
            !peal_rate_parse(rate, &curve.at[curve.count].rate, why))
            return false;
        curve.count++;
        at += used;
        at += strspn(at, " ");
    }
    *out = curve;
    return curve.count > 0;
}

static bool parse_word(const char *words, const char *text, uint64_t *out)
{
    size_t len = strlen(text);
    uint64_t index = 0;
    for (const char *word = words; word; index++) {
        size_t n = strcspn(word, "|");
        if (n == len && strncmp(word, text, n) == 0) {
            *out = index;
            return true;
        }
        if (word[n])
            word = word + n + 1;
        else
            word = NULL;
    }
    return false;
}

static void refuse(const struct row *row, const char *text, const char *why, struct peal_pos pos,
                   struct peal_diags *diags)
{
    if (row->words)
        peal_diag_error(diags, pos, "'%s' is '%s': expected one of %s", row->path, text,
                        row->words);
    else if (why)
        peal_diag_error(diags, pos, "'%s' is '%s': %s", row->path, text, why);
    else
        peal_diag_error(diags, pos, "'%s' is '%s': out of range: %" PRIu64 " to %" PRIu64,
                        row->path, text, row->min, row->max);
}

static bool read_one(struct peal_machine *machine, const struct row *row, const char *text,
                     void *field, const char **why)
{
    switch (row->kind) {
    case COUNT:
    case PAIR:
        return parse_count(row, text, field, why);
    case AUTO:
        if (strcmp(text, "auto") == 0) {
            *(uint64_t *)field = 0;
            return true;
        }
        return parse_count(row, text, field, why);
    case RATE:
    case CYCLE:
        return peal_rate_parse(text, field, why);
    case NS:
        return peal_time_parse_ns(text, field, why);
    case WORD:
        return parse_word(row->words, text, field);
    case BOOL:
        *why = "expected true or false";
        *(uint64_t *)field = strcmp(text, "true") == 0;
        return strcmp(text, "true") == 0 || strcmp(text, "false") == 0;
    case CURVE:
        return parse_curve(text, field, why);
    case TEXT:
        *why = "expected a name, a file that ends in .peal, or a list such as "
               "allreduce=ring,broadcast=mine.peal";
        if (!are_algorithms(text))
            return false;
        *(const char **)field = peal_arena_copy(&machine->arena, text, strlen(text));
        *why = "out of memory";
        return *(const char **)field != NULL;
    }
    assert(!"every kind is read");
    return false;
}

bool peal_machine_value_read(struct peal_machine *machine, enum peal_machine_key key,
                             const struct peal_machine_input *input, struct peal_pos pos,
                             struct peal_diags *diags)
{
    const struct row *row = &rows[key];
    size_t wanted = row->kind == PAIR ? 2 : 1;
    if (input->count != wanted || input->is_list != (wanted == 2)) {
        peal_diag_error(diags, pos, "'%s' takes %s", row->path,
                        wanted == 2 ? "two numbers: [columns, rows]" : "one value");
        return false;
    }
    for (size_t i = 0; i < wanted; i++) {
        char *field = (char *)&machine->keys + row->offset + i * sizeof(uint64_t);
        const char *why = NULL;
        if (!input->texts[i]) {
            peal_diag_error(diags, pos, "'%s' takes plain values", row->path);
            return false;
        }
        if (!read_one(machine, row, input->texts[i], field, &why)) {
            refuse(row, input->texts[i], why, pos, diags);
            return false;
        }
    }
    machine->given[key] = true;
    return true;
}

void peal_machine_defaults(struct peal_machine *machine)
{
    for (int i = 0; i < PEAL_KEY_COUNT; i++) {
        const struct row *row = &rows[i];
        char *field = (char *)&machine->keys + row->offset;
        const char *why = NULL;
        if (row->kind == RATE || row->kind == CYCLE)
            *(struct peal_rate *)(void *)field = (struct peal_rate){0, 1};
        if (row->kind == PAIR) {
            ((uint64_t *)(void *)field)[0] = ((uint64_t *)(void *)field)[1] = row->fallback ? 1 : 0;
        } else if (row->fallback) {
            bool ok = read_one(machine, row, row->fallback, field, &why);
            assert(ok && "defaults are good values");
            (void)ok;
        }
    }
}

static bool need(const struct peal_machine *machine, enum peal_machine_key key, const char *meaning,
                 struct peal_pos top, struct peal_diags *diags)
{
    if (machine->given[key])
        return true;
    peal_diag_error(diags, top, "missing key '%s': %s", rows[key].path, meaning);
    return false;
}

static bool need_links(const struct peal_machine *machine, struct peal_pos top,
                       struct peal_diags *diags)
{
    const struct peal_machine_keys *k = &machine->keys;
    const bool used[PEAL_LEVEL_COUNT] = {
        [PEAL_LEVEL_PE] = !k->flat && k->pes[0] * k->pes[1] > 1,
        [PEAL_LEVEL_CUBE] = !k->flat && k->cubes[0] * k->cubes[1] > 1,
        [PEAL_LEVEL_SIP] = !k->flat && k->sips > 1,
        [PEAL_LEVEL_FLAT] = k->flat > 1,
    };
    bool ok = true;
    for (int level = 0; level < PEAL_LEVEL_COUNT; level++) {
        if (!used[level])
            continue;
        enum peal_machine_key bw = (enum peal_machine_key)(PEAL_KEY_PE_BW + 2 * level);
        ok &= need(machine, bw, "the topology has links of this level", top, diags);
        ok &= need(machine, bw + 1, "the topology has links of this level", top, diags);
    }
    return ok;
}

static bool need_memories(const struct peal_machine *machine, struct peal_pos top,
                          struct peal_diags *diags)
{
    const struct peal_machine_keys *k = &machine->keys;
    const uint64_t used[] = {k->space, k->place_param, k->place_window, k->place_private,
                             k->place_tile};
    bool ok = true, asked[PEAL_MEM_COUNT] = {0};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++)
        asked[used[i]] = true;
    for (int mem = 0; mem < PEAL_MEM_COUNT; mem++) {
        if (asked[mem])
            ok &= need(machine, (enum peal_machine_key)(PEAL_KEY_TCM_BW + 4 * mem),
                       "buffers or slots are placed there", top, diags);
    }
    return ok;
}

bool peal_machine_complete(struct peal_machine *machine, struct peal_pos top,
                           struct peal_diags *diags)
{
    struct peal_machine_keys *k = &machine->keys;
    bool ok = true;
    if (!k->flat && !machine->has_own_graph)
        ok &= need(machine, PEAL_KEY_PES, "or topology.flat, topology.levels, topology.nodes", top,
                   diags);
    ok &= need(machine, PEAL_KEY_DMA_BW, "how fast a DMA engine moves bytes", top, diags);
    ok &= need(machine, PEAL_KEY_CLOCK, "how fast the math engine is", top, diags);
    ok &= need(machine, PEAL_KEY_LANES_F32, "how wide the math engine is", top, diags);
    ok &= need_memories(machine, top, diags);
    if (!ok)
        return false;
    /* Each factor is at most 65536: two products fit, and the third is checked before it is
     * computed. */
    uint64_t cubes = k->cubes[0] * k->cubes[1], pes = k->pes[0] * k->pes[1];
    uint64_t max_pes = PEAL_MACHINE_MAX_PES;
    if (!machine->has_own_graph && !k->flat &&
        (cubes > max_pes || pes > max_pes || cubes * pes > max_pes ||
         cubes * pes * k->sips > max_pes)) {
        peal_diag_error(diags, top, "the machine has more than %" PRIu64 " PEs", max_pes);
        return false;
    }
    if (!machine->has_own_graph)
        machine->pes = (uint32_t)(k->flat ? k->flat : cubes * pes * k->sips);
    if (k->ranks > machine->pes) {
        peal_diag_error(diags, top, "'ccl.ranks' is %" PRIu64 ", but the machine has %u PEs",
                        k->ranks, machine->pes);
        return false;
    }
    if (k->slot_bytes % 64) {
        peal_diag_error(diags, top, "'ipcq.slot_bytes' must be a multiple of 64");
        return false;
    }
    if (!machine->has_own_graph && !need_links(machine, top, diags))
        return false;
    return peal_machine_make_graph(machine, top, diags);
}

void peal_machine_key_value(const struct peal_machine *machine, enum peal_machine_key key,
                            struct peal_text *out)
{
    const struct row *row = &rows[key];
    const char *field = (const char *)&machine->keys + row->offset;
    uint64_t value = *(const uint64_t *)(const void *)field;
    if (!row->fallback && !machine->given[key])
        return;
    switch (row->kind) {
    case COUNT:
        peal_text_printf(out, "%" PRIu64, value);
        break;
    case AUTO:
        if (value)
            peal_text_printf(out, "%" PRIu64, value);
        else
            peal_text_puts(out, "auto");
        break;
    case PAIR:
        peal_text_printf(out, "[%" PRIu64 ", %" PRIu64 "]", value,
                         ((const uint64_t *)(const void *)field)[1]);
        break;
    case RATE:
    case CYCLE:
        peal_rate_print(*(const struct peal_rate *)(const void *)field, out);
        break;
    case NS:
        peal_time_print_ns(value, out);
        break;
    case WORD: {
        const char *word = row->words;
        /* Of a graph that is printed as nodes and links, what its generator knew is said. */
        if (key == PEAL_KEY_ROUTES && machine->has_own_graph && !machine->topology_text)
            value = machine->graph->rule + 1;
        for (; value; value--)
            word = strchr(word, '|') + 1;
        peal_text_printf(out, "%.*s", (int)strcspn(word, "|"), word);
        break;
    }
    case BOOL:
        peal_text_puts(out, value ? "true" : "false");
        break;
    case CURVE: {
        const struct peal_machine_curve *curve =
            (const struct peal_machine_curve *)(const void *)field;
        if (curve->count == 0)
            peal_text_puts(out, "none");
        for (uint64_t i = 0; i < curve->count; i++) {
            char bytes[24];
            peal_text_printf(out, "%s%s:", i ? " " : "",
                             peal_size_format(curve->at[i].bytes, bytes));
            peal_rate_print(curve->at[i].rate, out);
        }
        break;
    }
    case TEXT:
        peal_text_puts(out, *(const char *const *)(const void *)field);
        break;
    }
}

void peal_machine_print(const struct peal_machine *machine, struct peal_text *out)
{
    char open[2][32] = {"", ""};
    for (int i = 0; i < PEAL_KEY_COUNT; i++) {
        const char *path = rows[i].path;
        struct peal_text value = {0};
        peal_machine_key_value(machine, (enum peal_machine_key)i, &value);
        if (machine->has_own_graph && i <= PEAL_KEY_FLAT_LAT && i != PEAL_KEY_ROUTES)
            value.len = 0; /* it has no such levels */
        if (value.len == 0) {
            peal_text_release(&value);
            continue;
        }
        /* Prints headings for the levels that have changed since the last key. */
        int depth = 0;
        for (const char *dot; (dot = strchr(path, '.')); path = dot + 1, depth++) {
            size_t n = (size_t)(dot - path);
            if (strlen(open[depth]) != n || strncmp(open[depth], path, n) != 0) {
                snprintf(open[depth], sizeof open[depth], "%.*s", (int)n, path);
                if (depth == 0)
                    open[1][0] = 0;
                peal_text_printf(out, "%*s%s:\n", 2 * depth, "", open[depth]);
            }
        }
        if (depth == 1)
            open[1][0] = 0;
        if (machine->has_own_graph && i == PEAL_KEY_ROUTES)
            peal_yaml_graph_print(machine, out);
        peal_text_printf(out, "%*s%s: %s", 2 * depth, "", path, peal_text_get(&value));
        const char *meaning = rows[i].meaning;
        if (*meaning)
            peal_text_printf(out, "    # %s%s", meaning, machine->given[i] ? "" : " (default)");
        else if (!machine->given[i])
            peal_text_puts(out, "    # default");
        peal_text_puts(out, "\n");
        peal_text_release(&value);
    }
}
