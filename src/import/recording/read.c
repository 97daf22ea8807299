/* SPDX-License-Identifier: Apache-2.0 */
/* A recording as text: the calls of peal/record.h, one per line, in the order in which they were
 * made. Front ends that cannot call the library write it: a Python process, the processes of a
 * program. docs/record.md has the grammar. Positions in the plan are the kernel's own; diagnostics
 * about the text itself have the recording's lines. */
#include "import/reader.h"

#include <peal/record.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_WORDS = 64, MAX_LINE = 1 << 16, MAX_SPANS = MAX_WORDS };

static const char magic[] = "peal recording 1";

struct recording_reader {
    const struct peal_import *import;
    struct peal_diags *diags;
    bool failed;
    uint32_t line;
    char buffer[MAX_LINE], text[MAX_LINE];
    char *words[MAX_WORDS];
    uint32_t nwords;
    const char *rest; /* of the line after the first word, and after the second */
    const char *rest2;
    struct peal_arena *arena;   /* for what the head says */
    struct peal_record *record; /* NULL while only the head is read */
    struct peal_record_args args;
    const char *settings[PEAL_IMPORT_SETTINGS]; /* of the machine */
    uint32_t nsettings;
    bool is_program;
    uint32_t calls, period;
    const char *file; /* of the last line 'at', with what follows */
    bool lenient;
};

static void refuse(struct recording_reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void refuse(struct recording_reader *r, const char *format, ...)
{
    va_list args;
    if (r->failed)
        return;
    r->failed = true;
    va_start(args, format);
    peal_diag_add(r->diags, PEAL_ERROR, (struct peal_pos){r->import->source, r->line, 1, 0}, format,
                  args);
    va_end(args);
}

/* ---- words ---- */

/* Takes the line at *at, and divides it. False: it is the end of the text. */
static bool next_line(struct recording_reader *r, const char **at)
{
    const char *end = r->import->source->text + r->import->source->len;
    if (*at >= end || r->failed)
        return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    size_t len = (size_t)((stop ? stop : end) - *at);
    r->line++;
    if (len >= MAX_LINE) {
        refuse(r, "a line of %zu bytes", len);
        return false;
    }
    memcpy(r->buffer, *at, len);
    r->buffer[len] = '\0';
    r->nwords = 0;
    r->rest = r->rest2 = "";
    char *word = r->buffer;
    while (r->nwords < MAX_WORDS) {
        word += strspn(word, " \t\r");
        if (!*word)
            break;
        if (r->nwords == 1)
            r->rest = *at + (word - r->buffer);
        if (r->nwords == 2)
            r->rest2 = *at + (word - r->buffer);
        r->words[r->nwords++] = word;
        word += strcspn(word, " \t\r");
        if (!*word)
            break;
        *word++ = '\0';
    }
    *at = stop ? stop + 1 : end;
    return true;
}

/* The rest of the line that begins there, without its end. */
static const char *rest_of(struct recording_reader *r, const char *from)
{
    size_t len = strcspn(from, "\r\n"); /* sources end with a zero */
    memcpy(r->text, from, len);         /* not longer than the line */
    r->text[len] = '\0';
    return r->text;
}

/* A text of the head, kept. */
static const char *keep(struct recording_reader *r, const char *text)
{
    char *copy = peal_arena_copy(r->arena, text, strlen(text));
    if (!copy)
        refuse(r, "out of memory");
    return copy ? copy : "";
}

static const char *word(struct recording_reader *r, uint32_t i)
{
    if (i < r->nwords)
        return r->words[i];
    refuse(r, "'%s' needs more words", r->words[0]);
    return "";
}

static bool is_word(const struct recording_reader *r, uint32_t i, const char *text)
{
    return i < r->nwords && strcmp(r->words[i], text) == 0;
}

static uint64_t read_number(struct recording_reader *r, const char *text, const char **end)
{
    char *stop;
    errno = 0;
    unsigned long long value = strtoull(text, &stop, 0);
    if (stop == text || errno || text[0] == '-')
        refuse(r, "'%s' is not a number", text);
    *end = stop;
    return value;
}

static uint64_t number(struct recording_reader *r, uint32_t i, uint64_t max)
{
    const char *text = word(r, i), *end = "";
    if (r->failed)
        return 0;
    uint64_t value = read_number(r, text, &end);
    if (*end || value > max)
        refuse(r, "'%s' is not a number up to %" PRIu64, text, max);
    return r->failed ? 0 : value;
}

static int64_t signed_number(struct recording_reader *r, uint32_t i)
{
    const char *text = word(r, i);
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 0);
    if (end == text || *end || errno)
        refuse(r, "'%s' is not a number", text);
    return value;
}

/* NUMBER, or NUMBER+TIMES*launch. */
static int64_t rising_number(struct recording_reader *r, uint32_t i)
{
    const char *text = word(r, i), *plus = strchr(text, '+');
    char *end;
    if (!plus || plus == text)
        return signed_number(r, i);
    errno = 0;
    long long value = strtoll(text, &end, 0), times = 0;
    bool good = end == plus;
    if (good)
        times = strtoll(plus + 1, &end, 0);
    if (!good || end == plus + 1 || strcmp(end, "*launch") != 0 || errno)
        refuse(r, "'%s' is neither a number nor NUMBER+TIMES*launch", text);
    else
        peal_record_rise(r->record, times);
    return value;
}

static enum peal_dtype dtype(struct recording_reader *r, const char *name, size_t len)
{
    enum peal_dtype found = PEAL_U8;
    if (!peal_dtype_find(name, len, &found))
        refuse(r, "'%.*s' is not a type", (int)len, name);
    return found;
}

/* TYPE@ADDRESS*COUNT[*ROWS+STRIDE], or TYPE=VALUE. */
static struct peal_record_span span(struct recording_reader *r, uint32_t i)
{
    const char *text = word(r, i), *end = "";
    size_t len = strcspn(text, "@=");
    struct peal_record_span out = {.rows = 1};
    if (r->failed)
        return out;
    out.dtype = dtype(r, text, len);
    if (text[len] == '=') {
        char *stop;
        out.constant = 1;
        out.count = 1;
        out.value = strtod(text + len + 1, &stop);
        if (*stop || stop == text + len + 1)
            refuse(r, "'%s' is not a value", text);
        return out;
    }
    if (text[len] != '@') {
        refuse(r, "'%s' is not TYPE@ADDRESS*COUNT", text);
        return out;
    }
    out.address = read_number(r, text + len + 1, &end);
    out.count = 1;
    if (!r->failed && *end == '*')
        out.count = read_number(r, end + 1, &end);
    if (!r->failed && *end == '*') {
        uint64_t rows = read_number(r, end + 1, &end);
        out.rows = rows <= UINT32_MAX ? (uint32_t)rows : UINT32_MAX;
    }
    if (!r->failed && *end == '+')
        out.stride = read_number(r, end + 1, &end);
    if (!r->failed && *end)
        refuse(r, "'%s' is not TYPE@ADDRESS*COUNT*ROWS+STRIDE", text);
    return out;
}

/* ---- the head ---- */

/* True: the line was one of the head. */
static bool read_head(struct recording_reader *r)
{
    struct peal_record_args *a = &r->args;
    if (r->nwords == 0 || r->words[0][0] == '#' || is_word(r, 0, "note"))
        return true;
    if (is_word(r, 0, "ranks")) {
        a->ranks = (uint32_t)number(r, 1, PEAL_PLAN_MAX_RANKS);
    } else if (is_word(r, 0, "kernel")) {
        a->kernel = keep(r, rest_of(r, r->rest));
    } else if (is_word(r, 0, "launches")) {
        a->launches = (uint32_t)number(r, 1, 64);
    } else if (is_word(r, 0, "calls")) {
        r->is_program = true;
        r->calls = (uint32_t)number(r, 1, UINT32_MAX);
        r->period = r->nwords > 3 ? (uint32_t)number(r, 3, r->calls) : 0;
    } else if (is_word(r, 0, "slots")) {
        a->depth = (uint32_t)number(r, 1, 1 << 16);
    } else if (is_word(r, 0, "machine")) {
        if (r->nsettings == PEAL_IMPORT_SETTINGS)
            refuse(r, "more than %d lines 'machine'", PEAL_IMPORT_SETTINGS);
        else
            r->settings[r->nsettings++] = keep(r, word(r, 1));
    } else if (is_word(r, 0, "implements")) {
        a->implements = keep(r, word(r, 1));
        for (uint32_t i = 2; i + 1 < r->nwords && !r->failed; i += 2) {
            const char *name = keep(r, r->words[i + 1]);
            if (is_word(r, i, "input"))
                a->input = name;
            else if (is_word(r, i, "output"))
                a->output = name;
            else if (is_word(r, i, "root"))
                a->root = (uint32_t)number(r, i + 1, PEAL_PLAN_MAX_RANKS);
            else if (!is_word(r, i, "op") || !peal_reduce_find(name, strlen(name), &a->op))
                refuse(r, "'%s %s' says nothing about a contract", r->words[i], name);
        }
    } else {
        return false;
    }
    return true;
}

/* at LINE FILE, varies TEXT: a value of that line may differ from run to run. */
static void read_varies(struct recording_reader *r, struct peal_import_facts *facts)
{
    if (is_word(r, 0, "at")) {
        facts->varies_line = (uint32_t)number(r, 1, UINT32_MAX);
        r->file = r->rest2;
    } else if (is_word(r, 0, "varies")) {
        facts->varies_file = keep(r, rest_of(r, r->file ? r->file : ""));
        facts->varies = keep(r, rest_of(r, r->rest));
    }
}

enum peal_status peal_recording_read(struct peal_import *import, struct peal_diags *diags)
{
    struct recording_reader *r = calloc(1, sizeof *r);
    if (!r)
        return PEAL_NO_MEMORY;
    r->import = import;
    r->diags = diags;
    r->arena = &import->arena;
    const char *at = import->source->text;
    bool first = next_line(r, &at);
    if (!first || strncmp(import->source->text, magic, sizeof magic - 1) != 0)
        refuse(r, "a recording begins with '%s'", magic);
    while (next_line(r, &at) && read_head(r))
        continue;
    if (!r->failed && r->args.ranks == 0)
        refuse(r, "the recording does not say for how many ranks it is");
    struct peal_import_facts *facts = &import->facts;
    facts->nranks = r->args.ranks;
    facts->name = r->args.kernel ? r->args.kernel : "kernel";
    facts->collective = r->args.implements ? r->args.implements : "none";
    facts->protocol = "recorded";
    facts->contract = PEAL_CONTRACT_NONE;
    facts->out_of_place = true;
    facts->depth = r->args.depth;
    facts->is_program = r->is_program;
    facts->calls = r->calls;
    facts->period = r->period;
    facts->nsettings = r->nsettings;
    memcpy(facts->settings, r->settings, sizeof facts->settings);
    if (!r->failed && r->args.implements &&
        !peal_contract_find(r->args.implements, strlen(r->args.implements), &facts->contract))
        refuse(r, "there is no collective '%s'", r->args.implements);
    for (at = import->source->text; next_line(r, &at);) {
        facts->steps += r->nwords > 0;
        if (!facts->varies)
            read_varies(r, facts);
    }
    bool failed = r->failed;
    free(r);
    return failed ? PEAL_INVALID : PEAL_OK;
}

/* ---- the calls ---- */

static const char *const kinds[] = {
    [PEAL_RECORD_IN] = "in",           [PEAL_RECORD_OUT] = "out",
    [PEAL_RECORD_INOUT] = "inout",     [PEAL_RECORD_WINDOW] = "window",
    [PEAL_RECORD_PRIVATE] = "private", [PEAL_RECORD_CORE] = "core"};

/* region KIND NAME OWNER ADDRESS BYTES TYPE [zeroed] [shared] [kept] */
static void read_region(struct recording_reader *r)
{
    struct peal_record_region region = {.name = word(r, 2)};
    size_t kind = 0;
    while (kind < sizeof kinds / sizeof *kinds && !is_word(r, 1, kinds[kind]))
        kind++;
    if (kind == sizeof kinds / sizeof *kinds) {
        refuse(r, "'%s' is not a kind of region", word(r, 1));
        return;
    }
    region.kind = (enum peal_record_kind)kind;
    region.owner = (uint32_t)number(r, 3, UINT32_MAX);
    region.address = number(r, 4, UINT64_MAX);
    region.bytes = number(r, 5, UINT64_MAX);
    region.dtype = dtype(r, word(r, 6), strlen(word(r, 6)));
    for (uint32_t i = 7; i < r->nwords; i++) {
        if (is_word(r, i, "zeroed"))
            region.flags |= PEAL_RECORD_ZEROED;
        else if (is_word(r, i, "shared"))
            region.flags |= PEAL_RECORD_SHARED;
        else if (is_word(r, i, "kept"))
            region.flags |= PEAL_RECORD_KEPT;
        else
            refuse(r, "'%s' says nothing about a region", r->words[i]);
    }
    if (!r->failed)
        peal_record_region(r->record, &region);
}

/* compute FUNCTION SPAN... < SPAN...: destinations, then sources. */
static void read_compute(struct recording_reader *r)
{
    struct peal_record_span spans[MAX_SPANS];
    uint32_t n = 0, ndsts = UINT32_MAX;
    for (uint32_t i = 2; i < r->nwords; i++) {
        if (is_word(r, i, "<") && ndsts == UINT32_MAX)
            ndsts = n;
        else
            spans[n++] = span(r, i);
    }
    if (ndsts == UINT32_MAX)
        refuse(r, "'compute' needs '<' before what it reads");
    if (!r->failed)
        peal_record_compute(r->record, word(r, 1), spans, ndsts, spans + ndsts, n - ndsts);
}

/* [relaxed|acquire|release|acq_rel|seq_cst] [block|device|system], from a word to the end of the line. */
static uint32_t read_ordering(struct recording_reader *r, uint32_t i)
{
    static const struct {
        const char *word;
        uint32_t flags;
    } orders[] = {{"relaxed", PEAL_RECORD_RELAXED}, {"acquire", PEAL_RECORD_ACQUIRE},
                  {"release", PEAL_RECORD_RELEASE}, {"acq_rel", PEAL_RECORD_ACQ_REL},
                  {"seq_cst", PEAL_RECORD_SEQ_CST}, {"block", PEAL_RECORD_BLOCK},
                  {"device", PEAL_RECORD_DEVICE},   {"system", 0}};
    enum { ROWS = sizeof orders / sizeof *orders, ORDERS = 5 };
    uint32_t flags = 0, row = 0;
    for (uint32_t first = 0; i < r->nwords; i++, first = row < ORDERS ? ORDERS : ROWS) {
        row = first;
        while (row < ROWS && !is_word(r, i, orders[row].word))
            row++;
        if (row == ROWS) {
            refuse(r, "'%s' is not an order or a scope here", r->words[i]);
            return 0;
        }
        flags |= orders[row].flags;
    }
    return flags;
}

/* notify ADDRESS BYTES add|set VALUE [ORDERING], wait ADDRESS BYTES >=|==|>|!= VALUE [ORDERING] */
static void read_cell(struct recording_reader *r, bool waits)
{
    static const char *const relations[] = {[PEAL_RECORD_GE] = ">=",
                                            [PEAL_RECORD_EQ] = "==",
                                            [PEAL_RECORD_GT] = ">",
                                            [PEAL_RECORD_NE] = "!="};
    uint64_t address = number(r, 1, UINT64_MAX);
    uint32_t bytes = (uint32_t)number(r, 2, 8), flags = read_ordering(r, 5);
    int64_t value = rising_number(r, 4);
    if (!waits) {
        if (!is_word(r, 3, "add") && !is_word(r, 3, "set"))
            refuse(r, "'%s' is neither 'add' nor 'set'", word(r, 3));
        if (!r->failed)
            peal_record_notify(r->record, address, bytes,
                               is_word(r, 3, "set") ? PEAL_RECORD_SET : PEAL_RECORD_ADD, value,
                               flags);
        return;
    }
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
        if (is_word(r, 3, relations[i]) && !r->failed) {
            peal_record_wait(r->record, address, bytes, (enum peal_record_relation)i, value, flags);
            return;
        }
    }
    refuse(r, "'%s' is not a comparison", word(r, 3));
}

static void read_move(struct recording_reader *r)
{
    struct peal_record_span first = span(r, 1), second;
    if (is_word(r, 0, "copy")) {
        second = span(r, 2);
        if (!r->failed)
            peal_record_copy(r->record, &first, &second);
    } else if (is_word(r, 0, "read")) {
        if (!r->failed)
            peal_record_read(r->record, &first);
    } else {
        double value = r->nwords > 2 ? strtod(r->words[2], NULL) : 0;
        if (!r->failed)
            peal_record_write(r->record, &first, r->nwords > 2 ? &value : NULL);
    }
}

static void read_message(struct recording_reader *r)
{
    uint32_t peer = (uint32_t)number(r, 1, UINT32_MAX);
    struct peal_record_span data = span(r, 2);
    if (r->failed)
        return;
    if (is_word(r, 0, "send"))
        peal_record_send(r->record, peer, &data);
    else
        peal_record_recv(r->record, peer, &data);
}

/* order, flag_set and flag_wait: between two lanes. */
static void read_lanes(struct recording_reader *r)
{
    uint32_t from = (uint32_t)number(r, 1, UINT32_MAX), to = (uint32_t)number(r, 2, UINT32_MAX);
    uint32_t id = is_word(r, 0, "order") ? 0 : (uint32_t)number(r, 3, UINT32_MAX);
    if (r->failed)
        return;
    if (is_word(r, 0, "order"))
        peal_record_order(r->record, from, to);
    else if (is_word(r, 0, "flag_set"))
        peal_record_flag_set(r->record, from, to, id);
    else
        peal_record_flag_wait(r->record, from, to, id);
}

static void read_accumulate(struct recording_reader *r)
{
    struct peal_record_span dst = span(r, 2), src = span(r, 3);
    if (!r->failed)
        peal_record_accumulate(r->record, word(r, 1), &dst, &src);
}

static void read_take(struct recording_reader *r)
{
    uint64_t address = number(r, 1, UINT64_MAX);
    uint32_t bytes = (uint32_t)number(r, 2, 8);
    int64_t from = signed_number(r, 3), to = signed_number(r, 4);
    uint32_t flags = read_ordering(r, 5);
    if (from != (int32_t)from || to != (int32_t)to)
        refuse(r, "'take' needs numbers of 32 bits");
    if (!r->failed)
        peal_record_take_flags(r->record, address, bytes, (int32_t)from, (int32_t)to, flags);
}

static void read_fence(struct recording_reader *r)
{
    uint32_t flags = read_ordering(r, 1);
    if (!r->failed)
        peal_record_fence(r->record, flags);
}

static void read_call(struct recording_reader *r)
{
    if (read_head(r))
        return;
    if (is_word(r, 0, "region"))
        read_region(r);
    else if (is_word(r, 0, "rank"))
        peal_record_rank(r->record, (uint32_t)number(r, 1, UINT32_MAX));
    else if (is_word(r, 0, "lane"))
        peal_record_lane(r->record, (uint32_t)number(r, 1, UINT32_MAX),
                         r->nwords > 2 ? r->words[2] : NULL);
    else if (is_word(r, 0, "block"))
        peal_record_block(r->record, (uint32_t)number(r, 1, UINT32_MAX));
    else if (is_word(r, 0, "call"))
        peal_record_call(r->record, (uint32_t)number(r, 1, UINT32_MAX));
    else if (is_word(r, 0, "at"))
        peal_record_at(r->record, r->nwords > 2 ? rest_of(r, r->rest2) : NULL,
                       (uint32_t)number(r, 1, UINT32_MAX));
    else if (is_word(r, 0, "copy") || is_word(r, 0, "read") || is_word(r, 0, "write"))
        read_move(r);
    else if (is_word(r, 0, "compute"))
        read_compute(r);
    else if (is_word(r, 0, "accumulate"))
        read_accumulate(r);
    else if (is_word(r, 0, "notify") || is_word(r, 0, "wait"))
        read_cell(r, is_word(r, 0, "wait"));
    else if (is_word(r, 0, "take"))
        read_take(r);
    else if (is_word(r, 0, "fence"))
        read_fence(r);
    else if (is_word(r, 0, "send") || is_word(r, 0, "recv"))
        read_message(r);
    else if (is_word(r, 0, "order") || is_word(r, 0, "flag_set") || is_word(r, 0, "flag_wait"))
        read_lanes(r);
    else if (is_word(r, 0, "join"))
        peal_record_join(r->record);
    else if (is_word(r, 0, "refuse") || (is_word(r, 0, "varies") && !r->lenient))
        peal_record_refuse(r->record, rest_of(r, r->rest));
    else if (is_word(r, 0, "varies"))
        return; /* the verdict says it: facts.varies */
    else
        refuse(r, "'%s' is not a call of a recording", r->words[0]);
}

static bool open_record(struct recording_reader *r, const struct peal_import_options *options)
{
    r->args.struct_size = sizeof r->args;
    if (options->depth)
        r->args.depth = options->depth;
    if (options->slot_bytes)
        r->args.slot_bytes = options->slot_bytes;
    if (peal_record_new(&r->args, &r->record) == PEAL_OK)
        return true;
    refuse(r, "no recording can be made for this head");
    return false;
}

enum peal_status peal_recording_make(const struct peal_import *import,
                                     const struct peal_import_options *options,
                                     struct peal_diags *diags, struct peal_plan **out)
{
    struct recording_reader *r = calloc(1, sizeof *r);
    char why[4096] = "";
    if (!r)
        return PEAL_NO_MEMORY;
    struct peal_arena arena;
    peal_arena_init(&arena, 0);
    r->import = import;
    r->diags = diags;
    r->arena = &arena;
    r->lenient = options->lenient;
    const char *at = import->source->text;
    (void)next_line(r, &at);
    while (next_line(r, &at) && read_head(r))
        continue;
    if (!r->failed && open_record(r, options)) {
        r->line = r->nsettings = 0;
        for (at = import->source->text; next_line(r, &at);) {
            if (r->line > 1)
                read_call(r);
        }
    }
    enum peal_status status = PEAL_INVALID;
    if (r->failed)
        peal_record_free(r->record);
    else
        status = peal_record_finish(r->record, why, sizeof why, out);
    if (status != PEAL_OK && !r->failed)
        peal_diag_error(diags, (struct peal_pos){0}, "%s", why);
    peal_arena_release(&arena);
    free(r);
    return status;
}

uint64_t peal_recording_count(const struct peal_import *import)
{
    (void)import;
    return 0;
}

struct peal_pos peal_recording_rank_pos(const struct peal_import *import, uint32_t rank)
{
    (void)rank;
    return (struct peal_pos){import->source, 1, 1, 0};
}

/* What the front end says about itself: the notes of the head. */
void peal_recording_judge(const struct peal_import *import, uint32_t least_depth,
                          struct peal_findings *out)
{
    static const char note[] = "\nnote ";
    (void)least_depth;
    const char *text = import->source->text;
    for (const char *at = strstr(text, note); at; at = strstr(at + 1, note)) {
        const char *from = at + sizeof note - 1;
        peal_finding_add(out, PEAL_FINDING_NOTE, "recorded",
                         (struct peal_pos){import->source, 1, 1, 0}, "%.*s",
                         (int)strcspn(from, "\r\n"), from);
    }
}
