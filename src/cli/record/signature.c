/* SPDX-License-Identifier: Apache-2.0 */
/* --args: 'in x: f32[256], out y: f32[64*P], window s: 2K zeroed, nranks, ctx'.
 *
 *   [window] in|out|inout NAME: TYPE[N, ...]     a parameter; with `window`, other ranks reach it; with
 *                                                `kept` after it, the caller does not use it between launches
 *   window NAME: TYPE[N, ...] | BYTES [zeroed]   memory that all ranks reach
 *   private NAME: TYPE[N, ...]                   memory of one rank; with `pointer` after any of these, its
 *                                                address is passed, and not a descriptor
 *   nranks, rank, root, ctx, NUMBER, NAME=NUMBER
 *   plain                                        arguments one by one, not in one array
 *
 * --then: 'second(x, s, nranks, ctx), other.cpp:third'. Kernels that follow on the same memory, of this file or
 * of another, with arguments of their own by name, or those of the first.
 *
 * Dimensions are numbers, P (the number of ranks), or NUMBER*P. Addresses are made up: each rank's
 * windows are one after the other in a range of their own, with a page between them that nothing may
 * use.
 */
#include "cli/record/record.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Above what the address sanitizer keeps for itself on x86-64. */
#define OWN_ADDRESS UINT64_C(0x0000110000000000)
#define WINDOW_ADDRESS UINT64_C(0x0000120000000000)
#define RANK_STRIDE UINT64_C(0x0000000800000000)
enum { PAGE = 4096 };

struct reader {
    const struct peal_cli *cli;
    const char *at, *option;
};

static bool bad(struct reader *r, const char *expected)
{
    peal_cli_usage(r->cli, "--%s: expected %s at '%.20s'", r->option, expected, r->at);
    return false;
}

static void skip(struct reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool take(struct reader *r, const char *text)
{
    size_t len = strlen(text);
    skip(r);
    if (strncmp(r->at, text, len) != 0)
        return false;
    if (isalnum((unsigned char)text[len - 1]) &&
        (isalnum((unsigned char)r->at[len]) || r->at[len] == '_'))
        return false;
    r->at += len;
    return true;
}

static const char *take_name(struct reader *r)
{
    skip(r);
    const char *from = r->at;
    if (isdigit((unsigned char)*from))
        return NULL;
    while (isalnum((unsigned char)*r->at) || *r->at == '_')
        r->at++;
    if (r->at == from)
        return NULL;
    return peal_arena_copy(r->cli->arena, from, (size_t)(r->at - from));
}

static bool take_number(struct reader *r, int64_t *out)
{
    skip(r);
    const char *from = r->at;
    if (*r->at == '-')
        r->at++;
    int64_t n = 0;
    while (isdigit((unsigned char)*r->at) && n < INT64_MAX / 16)
        n = n * 10 + (*r->at++ - '0');
    if (r->at == from || !isdigit((unsigned char)r->at[-1]))
        return false;
    if (*from == '-')
        n = -n;
    if (*r->at == 'K' || *r->at == 'M') {
        n *= *r->at == 'K' ? 1 << 10 : 1 << 20;
        r->at++;
    }
    *out = n;
    return true;
}

/* 64, P, 64*P */
static bool take_dimension(struct reader *r, int64_t *number, bool *per_rank)
{
    *number = 1;
    *per_rank = take(r, "P");
    if (*per_rank)
        return true;
    if (!take_number(r, number) || *number < 0)
        return bad(r, "a dimension");
    if (take(r, "*"))
        *per_rank = take(r, "P") || bad(r, "P");
    return true;
}

static bool take_type(struct reader *r, struct signature_item *item)
{
    int64_t bytes;
    if (take_number(r, &bytes)) { /* a number of bytes */
        if (bytes < 1)
            return bad(r, "a number of bytes");
        item->dtype = PEAL_U8;
        item->ndims = 1;
        item->shape[0] = bytes;
        return true;
    }
    const char *name = take_name(r);
    if (!name || !peal_dtype_find(name, strlen(name), &item->dtype) || !take(r, "["))
        return bad(r, "a type like f32[256], or a number of bytes");
    do {
        if (item->ndims == 5)
            return bad(r, "at most five dimensions");
        if (!take_dimension(r, &item->shape[item->ndims], &item->per_rank[item->ndims]))
            return false;
        item->ndims++;
    } while (take(r, ","));
    return take(r, "]") || bad(r, "']'");
}

static bool take_memory(struct reader *r, struct signature_item *item)
{
    item->kind = SIGNATURE_MEMORY;
    item->name = take_name(r);
    if (!item->name || !take(r, ":"))
        return bad(r, "a name and ':'");
    if (!take_type(r, item))
        return false;
    for (;;) {
        if (take(r, "zeroed"))
            item->flags |= PEAL_RECORD_ZEROED;
        else if (take(r, "kept"))
            item->flags |= PEAL_RECORD_KEPT;
        else if (take(r, "pointer"))
            item->pointer = true;
        else
            return true;
    }
}

/* in, out, inout */
static bool take_direction(struct reader *r, enum peal_record_kind *out)
{
    static const char *const words[] = {"inout", "in", "out"};
    static const enum peal_record_kind kinds[] = {PEAL_RECORD_INOUT, PEAL_RECORD_IN,
                                                  PEAL_RECORD_OUT};
    for (int i = 0; i < 3; i++) {
        if (take(r, words[i])) {
            *out = kinds[i];
            return true;
        }
    }
    return false;
}

/* nranks, rank, root, ctx, NUMBER, NAME=NUMBER */
static bool take_value(struct reader *r, struct signature_item *item)
{
    static const char *const words[] = {"nranks", "rank", "root", "ctx"};
    for (int i = 0; i < 4; i++) {
        if (take(r, words[i])) {
            item->kind = (enum signature_kind)(SIGNATURE_RANKS + i);
            return true;
        }
    }
    item->name = take_name(r);
    if (item->name && !take(r, "="))
        return bad(r, "'=' and a number");
    return take_number(r, &item->value) || bad(r, "an argument");
}

static bool new_item(struct reader *r, struct signature *s, struct signature_item **out)
{
    if (s->len == REC_MAX_ARGS)
        return bad(r, "fewer arguments");
    *out = &s->items[s->len++];
    **out = (struct signature_item){.kind = SIGNATURE_NUMBER};
    return true;
}

static bool take_item(struct reader *r, struct signature *s)
{
    struct signature_item *item;
    if (take(r, "plain")) {
        s->plain = true;
        return true;
    }
    if (!new_item(r, s, &item))
        return false;
    if (take_direction(r, &item->memory))
        return take_memory(r, item);
    if (take(r, "window")) {
        item->memory = PEAL_RECORD_WINDOW;
        if (take_direction(r, &item->memory))
            item->flags = PEAL_RECORD_SHARED;
        return take_memory(r, item);
    }
    if (take(r, "private")) {
        item->memory = PEAL_RECORD_PRIVATE;
        return take_memory(r, item);
    }
    return take_value(r, item);
}

/* An argument of a kernel that follows: memory or a number by its name, or a value. */
static bool take_argument(struct reader *r, struct signature *s, struct signature_call *call)
{
    struct signature_item *item;
    const char *from = r->at, *name = take_name(r);
    if (call->nargs == REC_MAX_ARGS)
        return bad(r, "fewer arguments");
    for (uint32_t i = 0; name && i < s->first; i++) {
        if (s->items[i].name && strcmp(s->items[i].name, name) == 0) {
            call->args[call->nargs++] = (uint8_t)i;
            return true;
        }
    }
    r->at = from;
    if (!new_item(r, s, &item) || !take_value(r, item))
        return false;
    call->args[call->nargs++] = (uint8_t)(item - s->items);
    return true;
}

/* "other.cpp:", or NULL. */
static const char *take_file(struct reader *r)
{
    skip(r);
    size_t len = strcspn(r->at, ":(,");
    const char *from = r->at;
    if (r->at[len] != ':' || len == 0)
        return NULL;
    r->at += len + 1;
    return peal_arena_copy(r->cli->arena, from, len);
}

static bool take_call(struct reader *r, struct signature *s)
{
    struct signature_call *call = &s->then[s->nthen];
    if (s->nthen == REC_MAX_CALLS - 1)
        return bad(r, "fewer kernels");
    *call = (struct signature_call){.file = take_file(r)};
    call->entry = call->symbol = take_name(r);
    if (!call->entry)
        return bad(r, "the name of a kernel");
    for (uint32_t i = 0; call->file && i <= s->nthen; i++) {
        const struct signature_call *first = &s->then[i];
        if (!first->file || strcmp(first->file, call->file) != 0)
            continue;
        struct peal_text symbol = {0};
        peal_text_printf(&symbol, "peal_then%u_%s", i, call->entry);
        call->symbol = peal_arena_copy(r->cli->arena, peal_text_get(&symbol), symbol.len);
        peal_text_release(&symbol);
        break;
    }
    s->nthen++;
    if (take(r, "(")) {
        do {
            if (!take_argument(r, s, call))
                return false;
        } while (take(r, ","));
        return take(r, ")") || bad(r, "')'");
    }
    call->nargs = s->first;
    for (uint32_t i = 0; i < s->first; i++)
        call->args[i] = (uint8_t)i;
    return true;
}

static bool parse_then(const struct peal_cli *cli, const char *text, struct signature *out)
{
    struct reader r = {cli, text, "then"};
    do {
        if (!take_call(&r, out))
            return false;
    } while (take(&r, ","));
    skip(&r);
    return !*r.at || bad(&r, "',' or the end");
}

static bool parse(const struct peal_cli *cli, const char *text, struct signature *out)
{
    struct reader r = {cli, text, "args"};
    *out = (struct signature){0};
    do {
        if (!take_item(&r, out))
            return false;
    } while (take(&r, ","));
    skip(&r);
    if (*r.at)
        return bad(&r, "',' or the end");
    out->first = out->len;
    for (uint32_t i = 0; i < out->len; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const char *a = out->items[i].name, *b = out->items[k].name;
            if (a && b && strcmp(a, b) == 0) {
                peal_cli_usage(cli, "--args: '%s' is there twice", a);
                return false;
            }
        }
    }
    return true;
}

uint64_t peal_signature_bytes(const struct signature_item *item, uint32_t ranks)
{
    uint64_t n = peal_dtype_size(item->dtype);
    for (uint32_t i = 0; i < item->ndims; i++) {
        if (!peal_size_mul(n, (uint64_t)item->shape[i] * (item->per_rank[i] ? ranks : 1), &n) ||
            n > UINT64_C(1) << 32)
            n = UINT64_C(1) << 32;
    }
    return n;
}

bool peal_signature_is_shared(const struct signature_item *item)
{
    return item->memory == PEAL_RECORD_WINDOW || (item->flags & PEAL_RECORD_SHARED);
}

uint64_t peal_signature_window(uint32_t rank)
{
    return WINDOW_ADDRESS + rank * RANK_STRIDE;
}

uint64_t peal_signature_address(const struct signature *s, uint32_t item, uint32_t rank,
                                uint32_t ranks)
{
    bool shared = peal_signature_is_shared(&s->items[item]);
    uint64_t at = shared ? peal_signature_window(rank) : OWN_ADDRESS;
    for (uint32_t i = 0; i < item; i++) {
        const struct signature_item *before = &s->items[i];
        if (before->kind == SIGNATURE_MEMORY && peal_signature_is_shared(before) == shared)
            at += peal_size_align(peal_signature_bytes(before, ranks), PAGE) + PAGE;
    }
    return at;
}

static bool read_input(const struct peal_cli *cli, const struct peal_pair *input,
                       struct signature *s)
{
    for (uint32_t i = 0; i < s->len; i++) {
        struct signature_item *item = &s->items[i];
        if (item->kind == SIGNATURE_MEMORY && strcmp(item->name, input->key) == 0)
            return peal_cli_read(cli, input->value, &item->contents);
    }
    peal_cli_usage(cli, "--input: the arguments have no memory '%s'", input->key);
    return false;
}

bool peal_signature_read(const struct peal_cli *cli, const struct peal_recorded_options *options,
                         struct signature *out)
{
    if (!options->args) {
        peal_cli_usage(cli, "a kernel in C++ needs --args (or 'args' in a .yaml file beside it): "
                            "what it is called with, for example "
                            "--args 'in x: f32[256], out y: f32[256], window s: 2K zeroed, "
                            "nranks, ctx'");
        return false;
    }
    bool good =
        parse(cli, options->args, out) && (!options->then || parse_then(cli, options->then, out));
    for (size_t i = 0; i < options->inputs.len && good; i++)
        good = read_input(cli, &options->inputs.at[i], out);
    return good;
}
