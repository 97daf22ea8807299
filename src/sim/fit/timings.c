/* SPDX-License-Identifier: Apache-2.0 */
/* See timings.h. A line becomes fields; the form of the table says which field is what. */
#include "sim/fit/timings.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct timings_field {
    const char *at;
    size_t len;
};

enum timings_column { SIZE, TIME, IP_TIME, RANKS, COLLECTIVE, DTYPE, COLUMNS };

struct timings_reader {
    const struct peal_source *source;
    const struct peal_timings_options *options;
    struct peal_diags *diags;
    struct peal_timings *out;
    uint32_t line;
    const char *line_at;
    struct timings_field fields[PEAL_TIMINGS_MAX_FIELDS];
    size_t nfields;

    bool has_head; /* columns are known by name: */
    char separator;
    size_t columns[COLUMNS]; /* SIZE_MAX: none */
    double time_unit[2];     /* in us: of TIME, IP_TIME */
    size_t where[PEAL_TIMINGS_MAX_FIELDS];
    bool nccl;                     /* nccl-tests wrote it: other lines are what programs print */
    uint32_t ranks;                /* by the comments */
    enum peal_contract collective; /* by the comments */
};

static struct peal_pos pos_of(const struct timings_reader *r, const struct timings_field *field)
{
    struct peal_pos pos = {.source = r->source, .line = r->line, .col = 1};
    if (field) {
        pos.col = (uint32_t)(field->at - r->line_at) + 1;
        pos.len = (uint32_t)field->len;
    }
    return pos;
}

/* False after a diagnostic, for callers that end with it. */
#define REFUSE(r, field, ...)                                                                      \
    (peal_diag_error((r)->diags, pos_of((r), (field)), __VA_ARGS__), false)

static void split(struct timings_reader *r, const char *at, const char *end, char separator)
{
    r->nfields = 0;
    while (at <= end && r->nfields < PEAL_TIMINGS_MAX_FIELDS) {
        while (at < end && (*at == ' ' || (separator == ' ' && *at == '\t')))
            at++;
        const char *stop = at;
        while (stop < end && *stop != separator && !(separator == ' ' && *stop == '\t'))
            stop++;
        const char *last = stop;
        while (last > at && isspace((unsigned char)last[-1]))
            last--;
        if (separator != ' ' || last > at)
            r->fields[r->nfields++] = (struct timings_field){at, (size_t)(last - at)};
        at = stop + 1;
    }
}

/* "Size (B)" becomes "size_b"; nothing of a name that is too long. */
static void plain_name(const struct timings_field *field, char out[static 40])
{
    size_t n = 0;
    for (size_t i = 0; i < field->len && field->len < 40; i++) {
        unsigned char c = (unsigned char)field->at[i];
        if (isalnum(c))
            out[n++] = (char)tolower(c);
        else if (n && out[n - 1] != '_')
            out[n++] = '_';
    }
    while (n && out[n - 1] == '_')
        n--;
    out[n] = 0;
}

static bool is_one_of(const char *name, const char *words)
{
    size_t len = strlen(name);
    for (const char *at = words; len && (at = strstr(at, name)); at += len) {
        if ((at == words || at[-1] == '|') && (at[len] == '|' || at[len] == 0))
            return true;
    }
    return false;
}

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

/* Is this the head of a column of times, and in what unit? */
static bool is_time(const char *name, double *unit)
{
    static const struct {
        const char *name;
        double us;
    } units[] = {{"us", 1}, {"ns", 1e-3}, {"ms", 1e3}, {"sec", 1e6}, {"s", 1e6}};
    *unit = 1;
    bool is = strstr(name, "time") || strstr(name, "latency");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        char end[8];
        snprintf(end, sizeof end, "_%s", units[i].name);
        if (strcmp(name, units[i].name) != 0 && !ends_with(name, end))
            continue;
        *unit = units[i].us;
        return true;
    }
    return is;
}

/* Is this line the head of a table? Then its columns are known. */
static bool read_head(struct timings_reader *r)
{
    size_t columns[COLUMNS];
    for (int c = 0; c < COLUMNS; c++)
        columns[c] = SIZE_MAX;
    for (size_t i = 0; i < r->nfields; i++) {
        char name[40];
        double unit;
        enum timings_column c = COLUMNS;
        plain_name(&r->fields[i], name);
        if (is_one_of(name,
                      "bytes|size|size_b|size_bytes|bytes_b|message_size|message_bytes|msg_size"))
            c = SIZE;
        else if (is_one_of(name, "ranks|nranks|gpus|ngpus|processes|procs|np|world|world_size"))
            c = RANKS;
        else if (is_one_of(name, "collective|coll|operation"))
            c = COLLECTIVE;
        else if (is_one_of(name, "dtype|type|datatype"))
            c = DTYPE;
        else if (is_time(name, &unit))
            c = strncmp(name, "ip_", 3) == 0 || strstr(name, "in_place") || strstr(name, "inplace")
                    ? IP_TIME
                    : TIME;
        if (c == COLUMNS || columns[c] != SIZE_MAX)
            continue;
        columns[c] = i;
        if (c == TIME || c == IP_TIME)
            r->time_unit[c == IP_TIME] = unit;
    }
    if (columns[SIZE] == SIZE_MAX || (columns[TIME] == SIZE_MAX && columns[IP_TIME] == SIZE_MAX))
        return false;
    memcpy(r->columns, columns, sizeof columns);
    r->has_head = true;
    return true;
}

/* The columns that `where` names. */
static bool find_where(struct timings_reader *r)
{
    for (size_t w = 0; w < r->options->nwhere; w++) {
        const char *column = r->options->where[w].column;
        size_t i = 0;
        while (i < r->nfields && (strlen(column) != r->fields[i].len ||
                                  memcmp(column, r->fields[i].at, r->fields[i].len) != 0))
            i++;
        if (i == r->nfields)
            return REFUSE(r, NULL, "no column is called '%s'", column);
        r->where[w] = i;
    }
    return true;
}

/* "all_reduce_perf", "AllReduce", "allreduce". */
static bool find_collective(const struct timings_field *field, enum peal_contract *out)
{
    char mine[40], other[40];
    size_t n = 0;
    for (size_t i = 0; i < field->len && n + 1 < sizeof mine; i++) {
        if (isalnum((unsigned char)field->at[i]))
            mine[n++] = (char)tolower((unsigned char)field->at[i]);
    }
    mine[n] = 0;
    if (ends_with(mine, "perf"))
        mine[n - 4] = 0;
    for (int c = PEAL_CONTRACT_NONE + 1; c < PEAL_CONTRACT_COUNT; c++) {
        const char *name = peal_contract_info((enum peal_contract)c)->name;
        for (n = 0; *name; name++) {
            if (*name != '_')
                other[n++] = *name;
        }
        other[n] = 0;
        if (strcmp(mine, other) == 0) {
            *out = (enum peal_contract)c;
            return true;
        }
    }
    return false;
}

static enum peal_dtype find_dtype(const struct timings_field *field)
{
    static const struct {
        const char *name;
        enum peal_dtype dtype;
    } names[] = {{"half", PEAL_F16},  {"bfloat16", PEAL_BF16}, {"double", PEAL_F64},
                 {"int8", PEAL_I8},   {"uint8", PEAL_U8},      {"int32", PEAL_I32},
                 {"int64", PEAL_I64}, {"char", PEAL_I8},       {"float16", PEAL_F16},
                 {"f16", PEAL_F16},   {"bf16", PEAL_BF16},     {"f64", PEAL_F64},
                 {"i8", PEAL_I8},     {"u8", PEAL_U8}};
    char name[40];
    plain_name(field, name);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i].name) == 0)
            return names[i].dtype;
    }
    return PEAL_F32;
}

static bool parse_number(const struct timings_field *field, double *out)
{
    char text[40], *end;
    if (field->len == 0 || field->len >= sizeof text)
        return false;
    memcpy(text, field->at, field->len);
    text[field->len] = 0;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.' && text[0] != '-')
        return false;
    *out = strtod(text, &end);
    return *end == 0 && isfinite(*out);
}

static bool parse_size(const struct timings_field *field, uint64_t *out)
{
    char text[40];
    if (field->len == 0 || field->len >= sizeof text)
        return false;
    memcpy(text, field->at, field->len);
    text[field->len] = 0;
    for (size_t n = field->len; n > 1 && (text[n - 1] == 'B' || text[n - 1] == 'i'); n--)
        text[n - 1] = 0; /* 64KiB, 64KB, 64K: powers of 1024, as everywhere */
    return peal_size_parse(text, out);
}

/* A comment of nccl-tests: how many ranks, which collective. */
static bool read_comment(struct timings_reader *r, const char *at, const char *end)
{
    static const char rank_word[] = "Rank ", perf[] = "_perf";
    split(r, at, end, ' ');
    for (size_t i = 1; i < r->nfields; i++) {
        const struct timings_field *field = &r->fields[i];
        double number;
        if (i == 1 && field->len == sizeof rank_word - 2 && r->nfields > 3 &&
            memcmp(field->at, rank_word, field->len) == 0 && parse_number(&r->fields[2], &number) &&
            number >= 0 && number < 65536) {
            r->nccl = true;
            if (number == 0)
                r->ranks = 0;
            r->ranks = (uint32_t)peal_size_max(r->ranks, (uint64_t)number + 1);
        }
        if (field->len == 7 && memcmp(field->at, "nThread", 7) == 0)
            r->nccl = true;
        if (field->len > sizeof perf &&
            memcmp(field->at + field->len - sizeof perf + 1, perf, sizeof perf - 1) == 0) {
            struct timings_field name = *field;
            for (const char *c = field->at; c < field->at + field->len; c++) {
                if (*c == '/')
                    name = (struct timings_field){c + 1, (size_t)(field->at + field->len - c - 1)};
            }
            find_collective(&name, &r->collective);
        }
    }
    if (!r->nccl && !r->has_head) {
        memmove(r->fields, r->fields + 1, sizeof *r->fields * (PEAL_TIMINGS_MAX_FIELDS - 1));
        r->nfields -= r->nfields > 0;
        r->separator = ' ';
        if (read_head(r) && r->columns[SIZE] != 0) /* a sentence about bytes and us */
            r->has_head = false;
        return !r->has_head || find_where(r);
    }
    return true;
}

/* The collective of an nccl-tests row, by reduction, root, and what the bus carries per byte. */
static enum peal_contract guess_collective(const struct timings_field *fields, size_t time)
{
    static const struct timings_field none = {"none", 4};
    double algbw = 0, busbw = 0, root = -1;
    bool reduces = fields[3].len != none.len || memcmp(fields[3].at, none.at, none.len) != 0;
    if (time == 5)
        parse_number(&fields[4], &root);
    if (!parse_number(&fields[time + 1], &algbw) || !parse_number(&fields[time + 2], &busbw))
        return PEAL_CONTRACT_NONE;
    if (root >= 0)
        return reduces ? PEAL_CONTRACT_REDUCE : PEAL_CONTRACT_BROADCAST;
    if (!reduces || algbw < 1)
        return PEAL_CONTRACT_NONE; /* allgather or all_to_all; or too few digits */
    return busbw >= algbw * 0.99 ? PEAL_CONTRACT_ALLREDUCE : PEAL_CONTRACT_REDUCE_SCATTER;
}

static uint32_t find_series(struct timings_reader *r, const struct peal_timing_series *series)
{
    for (size_t i = 0; i < r->out->series.len; i++) {
        const struct peal_timing_series *s = &r->out->series.at[i];
        if (s->collective == series->collective && s->ranks == series->ranks &&
            s->dtype == series->dtype)
            return (uint32_t)i;
    }
    if (r->out->series.len == PEAL_TIMINGS_MAX_SERIES || !peal_vec_push(&r->out->series, *series))
        return UINT32_MAX;
    return (uint32_t)r->out->series.len - 1;
}

/* One row, its fields known. False after a diagnostic. */
static bool add_row(struct timings_reader *r, const struct timings_field *size,
                    const struct timings_field *time, double unit,
                    struct peal_timing_series *series)
{
    struct peal_measured_time row = {.line = r->line, .runs = 1};
    if (!parse_size(size, &row.bytes))
        return REFUSE(r, size, "'%.*s' is not a size in bytes", (int)size->len, size->at);
    if (!parse_number(time, &row.us) || row.us < 0)
        return REFUSE(r, time, "'%.*s' is not a time", (int)time->len, time->at);
    row.us *= unit;
    if (row.bytes == 0 || row.us == 0) {
        if (r->out->skipped++ == 0)
            r->out->first_skipped = r->line;
        return true;
    }
    if (r->options->collective != PEAL_CONTRACT_NONE)
        series->collective = r->options->collective;
    if (r->options->ranks)
        series->ranks = r->options->ranks;
    row.series = find_series(r, series);
    if (row.series == UINT32_MAX)
        return REFUSE(r, NULL, "more than %d collectives and numbers of ranks",
                      PEAL_TIMINGS_MAX_SERIES);
    if (r->out->rows.len == PEAL_TIMINGS_MAX_ROWS)
        return REFUSE(r, NULL, "more than %d rows", PEAL_TIMINGS_MAX_ROWS);
    if (!peal_vec_push(&r->out->rows, row))
        return REFUSE(r, NULL, "not enough memory for the table");
    return true;
}

/* A row below a head. */
static bool read_named(struct timings_reader *r)
{
    struct peal_timing_series series = {r->collective, r->ranks, PEAL_F32};
    enum timings_column time = r->columns[TIME] == SIZE_MAX ? IP_TIME : TIME;
    if (r->options->in_place) {
        if (r->columns[IP_TIME] == SIZE_MAX)
            return REFUSE(r, NULL, "the table has no column of times in place");
        time = IP_TIME;
    }
    for (int c = 0; c < COLUMNS; c++) {
        bool needed = c == SIZE || c == (int)time || (c != TIME && c != IP_TIME);
        if (needed && r->columns[c] != SIZE_MAX && r->columns[c] >= r->nfields)
            return REFUSE(r, NULL, "the line has %zu fields, its table at least %zu", r->nfields,
                          r->columns[c] + 1);
    }
    for (size_t w = 0; w < r->options->nwhere; w++) {
        const char *value = r->options->where[w].value;
        const struct timings_field *field = &r->fields[r->where[w]];
        if (r->where[w] >= r->nfields || strlen(value) != field->len ||
            memcmp(value, field->at, field->len) != 0)
            return true;
    }
    if (r->columns[COLLECTIVE] != SIZE_MAX) {
        const struct timings_field *field = &r->fields[r->columns[COLLECTIVE]];
        if (!find_collective(field, &series.collective))
            return REFUSE(r, field, "'%.*s' is not a collective", (int)field->len, field->at);
    }
    if (r->columns[RANKS] != SIZE_MAX) {
        const struct timings_field *field = &r->fields[r->columns[RANKS]];
        double ranks;
        if (!parse_number(field, &ranks) || ranks < 1 || ranks > 65536 || ranks != floor(ranks))
            return REFUSE(r, field, "'%.*s' is not a number of ranks", (int)field->len, field->at);
        series.ranks = (uint32_t)ranks;
    }
    if (r->columns[DTYPE] != SIZE_MAX)
        series.dtype = find_dtype(&r->fields[r->columns[DTYPE]]);
    return add_row(r, &r->fields[r->columns[SIZE]], &r->fields[r->columns[time]],
                   r->time_unit[time == IP_TIME], &series);
}

/* nccl-tests: size count type redop [root] time algbw busbw wrong [time algbw busbw wrong]. */
static bool is_nccl_row(const struct timings_reader *r)
{
    double number;
    return r->nfields >= 8 && parse_number(&r->fields[0], &number) &&
           parse_number(&r->fields[1], &number) && isalpha((unsigned char)r->fields[2].at[0]) &&
           isalpha((unsigned char)r->fields[3].at[0]);
}

static bool read_nccl(struct timings_reader *r)
{
    size_t time = r->nfields == 8 || r->nfields == 12 ? 4 : 5;
    size_t taken = r->options->in_place ? time + 4 : time;
    if (r->nfields != time + 4 && r->nfields != time + 8)
        return REFUSE(r, NULL, "a row of nccl-tests has 8, 9, 12 or 13 fields, not %zu",
                      r->nfields);
    if (taken >= r->nfields)
        return REFUSE(r, NULL, "the row has no time in place");
    struct peal_timing_series series = {r->collective, r->ranks, find_dtype(&r->fields[2])};
    if (series.collective == PEAL_CONTRACT_NONE)
        series.collective = guess_collective(r->fields, time);
    return add_row(r, &r->fields[0], &r->fields[taken], 1, &series);
}

static bool read_line(struct timings_reader *r, const char *at, const char *end)
{
    double number;
    if (*at == '#')
        return read_comment(r, at, end);
    char separator = memchr(at, '\t', (size_t)(end - at)) ? '\t' : ' ';
    if (separator == ' ' && memchr(at, ',', (size_t)(end - at)))
        separator = ',';
    if (r->has_head)
        separator = r->separator;
    split(r, at, end, separator);
    if (r->has_head)
        return read_named(r);
    bool numeric = r->nfields && parse_number(&r->fields[0], &number);
    if (!numeric && !r->nccl && read_head(r)) {
        r->separator = separator;
        return find_where(r);
    }
    if (is_nccl_row(r) || (r->nccl && numeric)) {
        r->nccl = true;
        return read_nccl(r);
    }
    uint64_t size;
    if (r->nfields && !numeric && (r->nccl || !parse_size(&r->fields[0], &size)))
        return r->nccl || REFUSE(r, &r->fields[0],
                                 "expected a size in bytes, or the head of a table "
                                 "with columns such as bytes and time_us");
    size_t taken = r->options->in_place ? 2 : 1;
    if (r->nfields <= taken)
        return REFUSE(r, NULL, "expected a size and a time%s",
                      peal_text_if(taken == 2, ", and a time in place"));
    return add_row(r, &r->fields[0], &r->fields[taken], 1,
                   &(struct peal_timing_series){r->collective, r->ranks, PEAL_F32});
}

static int compare_rows(const void *a, const void *b)
{
    const struct peal_measured_time *x = a, *y = b;
    if (x->series != y->series)
        return x->series < y->series ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->us > y->us) - (x->us < y->us);
}

/* Rows of a series whose collective no line said are of the one that others said. */
static void join_unnamed(struct peal_timings *out)
{
    for (size_t i = 0; i < out->series.len; i++) {
        struct peal_timing_series *s = &out->series.at[i];
        for (size_t j = 0; j < out->series.len && s->collective == PEAL_CONTRACT_NONE; j++) {
            const struct peal_timing_series *other = &out->series.at[j];
            if (other->collective == PEAL_CONTRACT_NONE || other->ranks != s->ranks ||
                other->dtype != s->dtype)
                continue;
            for (size_t k = 0; k < out->rows.len; k++) {
                if (out->rows.at[k].series == i)
                    out->rows.at[k].series = (uint32_t)j;
            }
            break;
        }
    }
}

/* Each size once, with the median of its runs (of two: the faster one's neighbour's mean). */
static void take_medians(struct peal_timings *out)
{
    size_t kept = 0;
    if (out->rows.len)
        qsort(out->rows.at, out->rows.len, sizeof *out->rows.at, compare_rows);
    for (size_t i = 0, n; i < out->rows.len; i += n) {
        struct peal_measured_time row = out->rows.at[i];
        for (n = 1; i + n < out->rows.len && out->rows.at[i + n].series == row.series &&
                    out->rows.at[i + n].bytes == row.bytes;)
            n++;
        row.us = (out->rows.at[i + n / 2].us + out->rows.at[i + (n - 1) / 2].us) / 2;
        row.runs = (uint32_t)n;
        out->rows.at[kept++] = row;
    }
    out->rows.len = kept;
}

enum peal_status peal_timings_read(const struct peal_source *source,
                                   const struct peal_timings_options *options,
                                   struct peal_diags *diags, struct peal_timings *out)
{
    struct timings_reader r = {
        .source = source, .options = options, .diags = diags, .out = out, .separator = ' '};
    *out = (struct peal_timings){0};
    bool ok = true;
    if (options->nwhere > PEAL_TIMINGS_MAX_FIELDS)
        return PEAL_INVALID;
    const char *at = source->text, *end = source->text + source->len;
    for (r.line = 1; at < end && diags->errors < PEAL_DIAG_LIMIT; r.line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (!stop)
            stop = end;
        const char *last = stop;
        r.line_at = at;
        while (last > at && isspace((unsigned char)last[-1]))
            last--;
        while (at < last && *at == ' ')
            at++;
        if (last > at)
            ok &= read_line(&r, at, last);
        at = stop + 1;
    }
    if (ok && out->rows.len == 0) {
        r.line = 1;
        ok = REFUSE(&r, NULL, "the table has no row with a size and a time%s",
                    peal_text_if(options->nwhere > 0, " that is wanted"));
    }
    if (ok && options->nwhere && !r.has_head)
        ok = REFUSE(&r, NULL, "only a table with a head has columns by name");
    join_unnamed(out);
    take_medians(out);
    return ok ? PEAL_OK : PEAL_INVALID;
}

void peal_timings_release(struct peal_timings *timings)
{
    peal_vec_release(&timings->series);
    peal_vec_release(&timings->rows);
}
