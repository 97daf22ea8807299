/* SPDX-License-Identifier: Apache-2.0 */
/* MSCCL XML -> model. Expat streams the file. Document types and custom entities are refused, so
 * that no text is longer than the file. Elements are collected in the order of the file, then
 * sorted and linked by order.c. */
#include "import/msccl/read.h"

#include <errno.h>
#include <expat.h>
#include <string.h>

enum element { NONE, ALGO, GPU, TB, STEP };
static const char *const element_names[] = {"", "algo", "gpu", "tb", "step"};

struct xml_reader {
    struct msccl_reader base;
    XML_Parser parser;
    enum element inside; /* the innermost open element */
    uint32_t strange;    /* enclosing elements that are passed over, up to this one */
    const char **attributes;
    struct peal_pos pos; /* of the element */
    bool failed, has_algo;
};

static void stop(struct xml_reader *r)
{
    if (!r->failed)
        XML_StopParser(r->parser, XML_FALSE);
    r->failed = true;
}

/* The position of an attribute's name in the current tag, or of the tag itself if it is not
 * found. */
static struct peal_pos attribute_pos(const struct xml_reader *r, const char *name)
{
    const struct peal_source *source = r->base.import->source;
    uint64_t at = (uint64_t)XML_GetCurrentByteIndex(r->parser);
    uint64_t end = at + (uint64_t)XML_GetCurrentByteCount(r->parser);
    struct peal_pos pos = r->pos;
    size_t len = strlen(name);
    uint32_t line = r->pos.line, col = r->pos.col;
    if (end > source->len)
        return pos;
    for (uint64_t i = at; i + len < end; i++) {
        bool begins = i > at && strchr(" \t\r\n", source->text[i - 1]);
        if (begins && memcmp(source->text + i, name, len) == 0 &&
            strchr(" \t\r\n=", source->text[i + len])) {
            pos.line = line;
            pos.col = col;
            pos.len = (uint32_t)len;
            return pos;
        }
        col++;
        if (source->text[i] == '\n') {
            line++;
            col = 1;
        }
    }
    return pos;
}

static const char *find(const struct xml_reader *r, const char *name)
{
    for (const char **a = r->attributes; *a; a += 2) {
        if (strcmp(a[0], name) == 0)
            return a[1];
    }
    return NULL;
}

/* Records that RCCL requires an attribute that is missing; the file may be clear without it. */
static void note_missing(struct xml_reader *r, const char *name)
{
    struct msccl_algo *algo = r->base.algo;
    if (algo->missing.attribute)
        return;
    algo->missing.pos = r->pos;
    algo->missing.element = element_names[r->inside];
    algo->missing.attribute = name;
}

static bool parse_int(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || strchr(" \t\n\r\v\f+", text[0]))
        return false;
    *out = value;
    return true;
}

/* An attribute between lo and hi. If it is missing and not `needed`: `otherwise`. */
struct bounds {
    int64_t lo, hi, otherwise;
    bool needed;
};

static int64_t read_int(struct xml_reader *r, const char *name, struct bounds b)
{
    const char *text = find(r, name);
    int64_t value = 0;
    if (r->failed)
        return b.lo;
    if (!text && b.needed) {
        peal_diag_error(r->base.diags, r->pos, "'%s' has no attribute '%s'",
                        element_names[r->inside], name);
        stop(r);
        return b.lo;
    }
    if (!text) {
        note_missing(r, name);
        return b.otherwise;
    }
    if (parse_int(text, &value) && value >= b.lo && value <= b.hi)
        return value;
    peal_diag_error(r->base.diags, attribute_pos(r, name),
                    "'%s' is '%.40s'; a number from %lld to %lld is wanted", name, text,
                    (long long)b.lo, (long long)b.hi);
    stop(r);
    return b.lo;
}

static int32_t need(struct xml_reader *r, const char *name, int64_t lo, int64_t hi)
{
    return (int32_t)read_int(r, name, (struct bounds){lo, hi, 0, true});
}

static int32_t want(struct xml_reader *r, const char *name, int64_t lo, int64_t hi,
                    int64_t otherwise)
{
    return (int32_t)read_int(r, name, (struct bounds){lo, hi, otherwise, false});
}

static const char *keep(struct xml_reader *r, const char *text)
{
    const char *copy = peal_arena_copy(&r->base.import->arena, text, strlen(text));
    if (!copy) {
        r->base.status = PEAL_NO_MEMORY;
        stop(r);
    }
    if (!copy)
        return "";
    return copy;
}

static const char *need_text(struct xml_reader *r, const char *name)
{
    const char *text = find(r, name);
    if (!text && !r->failed) {
        peal_diag_error(r->base.diags, r->pos, "'%s' has no attribute '%s'",
                        element_names[r->inside], name);
        stop(r);
    }
    if (!text)
        return "";
    return text;
}

static void read_protocol(struct xml_reader *r)
{
    struct peal_import_facts *facts = &r->base.import->facts;
    const char *proto = need_text(r, "proto");
    if (r->failed)
        return;
    if (strcmp(proto, "Simple") != 0 && strcmp(proto, "LL") != 0 && strcmp(proto, "LL128") != 0) {
        peal_diag_error(r->base.diags, attribute_pos(r, "proto"),
                        "protocol '%.40s'; there are Simple, LL and LL128", proto);
        stop(r);
        return;
    }
    facts->protocol = keep(r, proto);
    /* 8 FIFO steps; Simple uses 4 of them per chunk. */
    facts->depth = strcmp(proto, "Simple") == 0 ? 2 : 8;
}

static void read_collective(struct xml_reader *r)
{
    struct peal_import_facts *facts = &r->base.import->facts;
    struct msccl_algo *algo = r->base.algo;
    const char *coll = need_text(r, "coll");
    if (r->failed)
        return;
    if (!peal_import_contract(coll, &facts->contract)) {
        peal_diag_error(r->base.diags, attribute_pos(r, "coll"), "unknown collective '%.40s'",
                        coll);
        stop(r);
        return;
    }
    facts->collective = keep(r, coll);
    bool many = facts->contract == PEAL_CONTRACT_ALLGATHER ||
                facts->contract == PEAL_CONTRACT_REDUCE_SCATTER ||
                facts->contract == PEAL_CONTRACT_ALL_TO_ALL;
    if (many)
        algo->mult = algo->nranks;
    else
        algo->mult = 1;
}

static void read_place(struct xml_reader *r)
{
    struct msccl_algo *algo = r->base.algo;
    static const struct {
        const char *name;
        uint32_t flag;
    } known[] = {{"nchannels", MSCCL_HAS_NCHANNELS},
                 {"inplace", MSCCL_HAS_INPLACE},
                 {"outofplace", MSCCL_HAS_OUTOFPLACE},
                 {"minBytes", MSCCL_HAS_MINBYTES},
                 {"maxBytes", MSCCL_HAS_MAXBYTES}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (find(r, known[i].name))
            algo->has |= known[i].flag;
    }
    algo->nchannels = want(r, "nchannels", 0, 1 << 20, 0);
    algo->inplace = want(r, "inplace", 0, 1, 0);
    algo->outofplace = want(r, "outofplace", 0, 1, !algo->inplace);
    algo->min_bytes = read_int(r, "minBytes", (struct bounds){0, INT64_MAX, 0, false});
    algo->max_bytes = read_int(r, "maxBytes", (struct bounds){0, INT64_MAX, 0, false});
    algo->has_root = find(r, "root") != NULL;
    if (algo->has_root)
        algo->root = (uint32_t)need(r, "root", 0, (int64_t)algo->nranks - 1);
    r->base.import->facts.in_place = algo->inplace;
    r->base.import->facts.out_of_place = algo->outofplace;
}

static void read_algo(struct xml_reader *r)
{
    struct msccl_algo *algo = r->base.algo;
    struct peal_import_facts *facts = &r->base.import->facts;
    const struct peal_source *source = r->base.import->source;
    if (r->has_algo) {
        peal_diag_error(r->base.diags, r->pos, "a second 'algo'");
        stop(r);
        return;
    }
    r->has_algo = true;
    algo->line = r->pos.line;
    algo->col = r->pos.col;
    uint64_t end =
        (uint64_t)XML_GetCurrentByteIndex(r->parser) + (uint64_t)XML_GetCurrentByteCount(r->parser);
    if (end > 0)
        end = end - 1;
    else
        end = 0; /* '>' */
    if (end > 0 && source->text[end - 1] == '/')
        algo->tag_end = end - 1;
    else
        algo->tag_end = end;
    const char *name = find(r, "name");
    if (!name)
        note_missing(r, "name");
    facts->name = keep(r, name ? name : "algo");
    algo->nranks = (uint32_t)need(r, "ngpus", 1, PEAL_PLAN_MAX_RANKS);
    algo->nchunks = (uint32_t)need(r, "nchunksperloop", 1, 1 << 24);
    facts->nranks = algo->nranks;
    read_protocol(r);
    read_collective(r);
    read_place(r);
}

static void read_gpu(struct xml_reader *r)
{
    struct msccl_gpu gpu = {.line = r->pos.line, .col = r->pos.col};
    gpu.id = need(r, "id", 0, (int64_t)r->base.algo->nranks - 1);
    gpu.i_chunks = want(r, "i_chunks", 0, 1 << 24, (int64_t)r->base.algo->nchunks);
    gpu.o_chunks = want(r, "o_chunks", 0, 1 << 24, (int64_t)r->base.algo->nchunks);
    gpu.s_chunks = want(r, "s_chunks", 0, 1 << 24, 0);
    gpu.first = (uint32_t)r->base.tbs.len;
    if (!r->failed && !peal_vec_push(&r->base.gpus, gpu)) {
        r->base.status = PEAL_NO_MEMORY;
        stop(r);
    }
}

static void read_tb(struct xml_reader *r)
{
    struct msccl_tb tb = {.line = r->pos.line, .col = r->pos.col};
    int64_t last = (int64_t)r->base.algo->nranks - 1;
    tb.id = need(r, "id", 0, UINT16_MAX - 2);
    tb.send = need(r, "send", -1, last);
    tb.recv = need(r, "recv", -1, last);
    tb.chan = want(r, "chan", 0, 1 << 16, 0);
    tb.offset = (uint64_t)XML_GetCurrentByteIndex(r->parser);
    tb.first = (uint32_t)r->base.steps.len;
    if (r->failed)
        return;
    int32_t own = r->base.gpus.at[r->base.gpus.len - 1].id;
    if (tb.send == own || tb.recv == own) {
        peal_diag_error(r->base.diags, attribute_pos(r, tb.send == own ? "send" : "recv"),
                        "a thread block of gpu %d has itself as peer", own);
        stop(r);
        return;
    }
    if (!peal_vec_push(&r->base.tbs, tb)) {
        r->base.status = PEAL_NO_MEMORY;
        stop(r);
    }
    r->base.gpus.at[r->base.gpus.len - 1].count++;
}

static uint8_t read_buffer(struct xml_reader *r, const char *name, bool used)
{
    const char *text = find(r, name);
    static const char letters[] = "ios";
    const char *at = NULL;
    if (text && strlen(text) == 1)
        at = strchr(letters, text[0]);
    if (at)
        return (uint8_t)(at - letters);
    if (!text)
        note_missing(r, name);
    if (r->failed || !used)
        return IMPORT_INPUT;
    if (text)
        peal_diag_error(r->base.diags, attribute_pos(r, name),
                        "'%s' is '%.40s'; buffers are i, o and s", name, text);
    else
        peal_diag_error(r->base.diags, r->pos, "'step' has no attribute '%s'", name);
    stop(r);
    return IMPORT_INPUT;
}

static uint8_t read_type(struct xml_reader *r)
{
    const char *type = need_text(r, "type");
    if (r->failed)
        return MSCCL_NOP;
    for (int i = 0; i < MSCCL_TYPES; i++) {
        if (strcmp(type, peal_msccl_types[i].name) == 0)
            return (uint8_t)i;
    }
    peal_diag_error(r->base.diags, attribute_pos(r, "type"),
                    "unknown type '%.40s'; there are s r cpy re rcs rrs rrc rrcs nop", type);
    stop(r);
    return MSCCL_NOP;
}

static int32_t read_offset(struct xml_reader *r, const char *name, bool is_used)
{
    if (is_used)
        return need(r, name, 0, 1 << 24);
    return want(r, name, -1, 1 << 24, -1);
}

static void read_step(struct xml_reader *r)
{
    struct msccl_step step = {.line = r->pos.line, .col = r->pos.col};
    step.type = read_type(r);
    const struct msccl_type_info *info = &peal_msccl_types[step.type];
    step.s = need(r, "s", 0, 1 << 24);
    step.srcbuf = read_buffer(r, "srcbuf", info->reads);
    step.dstbuf = read_buffer(r, "dstbuf", info->writes);
    step.srcoff = read_offset(r, "srcoff", info->reads);
    step.dstoff = read_offset(r, "dstoff", info->writes);
    bool moves = step.type != MSCCL_NOP;
    if (moves)
        step.cnt = need(r, "cnt", 1, 1 << 20);
    else
        step.cnt = want(r, "cnt", 0, 1 << 20, 0);
    step.depid = want(r, "depid", -1, UINT16_MAX - 2, -1);
    step.deps = want(r, "deps", -1, 1 << 24, -1);
    step.hasdep = (uint8_t)want(r, "hasdep", 0, 1, 0);
    if (r->failed)
        return;
    const struct msccl_tb *tb = &r->base.tbs.at[r->base.tbs.len - 1];
    if ((info->sends && tb->send < 0) || (info->receives && tb->recv < 0)) {
        peal_diag_error(r->base.diags, r->pos, "a step '%s' in a thread block without a %s peer",
                        info->name, info->sends && tb->send < 0 ? "send" : "recv");
        peal_diag_note(r->base.diags, (struct peal_pos){r->pos.source, tb->line, tb->col, 0},
                       "the thread block is here");
        stop(r);
        return;
    }
    if (r->base.steps.len >= UINT32_MAX / 8 || !peal_vec_push(&r->base.steps, step)) {
        r->base.status = PEAL_NO_MEMORY;
        stop(r);
    }
    r->base.tbs.at[r->base.tbs.len - 1].count++;
}

static void count_attributes(struct xml_reader *r)
{
    uint32_t n = 0;
    for (const char **a = r->attributes; *a; a += 2)
        n++;
    if (n > r->base.algo->max_attributes) {
        r->base.algo->max_attributes = n;
        r->base.algo->max_attributes_at = r->pos;
    }
}

static bool is_known(const char *name)
{
    for (enum element e = ALGO; e <= STEP; e++) {
        if (strcmp(name, element_names[e]) == 0)
            return true;
    }
    return false;
}

/* RCCL's reader ignores elements that it does not know, and everything in them. */
static void pass_over(struct xml_reader *r, const char *name)
{
    struct msccl_algo *algo = r->base.algo;
    r->strange++;
    if (r->strange > 1 || algo->nstrange++)
        return;
    algo->strange_at = r->pos;
    algo->strange = peal_arena_copy(&r->base.import->arena, name, peal_size_min(strlen(name), 40));
    if (!algo->strange) {
        r->base.status = PEAL_NO_MEMORY;
        stop(r);
    }
}

static void XMLCALL on_start(void *opaque, const XML_Char *name, const XML_Char **attributes)
{
    struct xml_reader *r = opaque;
    static void (*const read[])(struct xml_reader *) = {NULL, read_algo, read_gpu, read_tb,
                                                        read_step};
    if (r->failed)
        return;
    r->pos = (struct peal_pos){
        r->base.import->source, (uint32_t)XML_GetCurrentLineNumber(r->parser),
        (uint32_t)XML_GetCurrentColumnNumber(r->parser) + 1, (uint32_t)strlen(name) + 1};
    r->attributes = attributes;
    if (r->strange || (r->inside != NONE && !is_known(name))) {
        pass_over(r, name);
        return;
    }
    if (r->inside == STEP || strcmp(name, element_names[r->inside + 1]) != 0) {
        peal_diag_error(r->base.diags, r->pos, "unexpected element '%.40s' %s%s", name,
                        r->inside == NONE ? "at the top; a plan is an 'algo'" : "inside ",
                        element_names[r->inside]);
        stop(r);
        return;
    }
    r->inside++;
    count_attributes(r);
    read[r->inside](r);
}

static void XMLCALL on_end(void *opaque, const XML_Char *name)
{
    struct xml_reader *r = opaque;
    (void)name;
    if (r->failed)
        return;
    if (r->strange)
        r->strange--;
    else if (r->inside > NONE)
        r->inside--;
}

static void XMLCALL on_doctype(void *opaque, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int internal)
{
    struct xml_reader *r = opaque;
    (void)name, (void)system, (void)public, (void)internal;
    if (r->failed)
        return;
    struct peal_pos pos = {r->base.import->source, (uint32_t)XML_GetCurrentLineNumber(r->parser),
                           (uint32_t)XML_GetCurrentColumnNumber(r->parser) + 1, 0};
    peal_diag_error(r->base.diags, pos, "document types and entities are not read");
    stop(r);
}

/* In pieces, so that a fault is found before the rest is read. */
static void parse(struct xml_reader *r)
{
    const struct peal_source *source = r->base.import->source;
    enum { PIECE = 1 << 20 };
    for (size_t at = 0; !r->failed; at += PIECE) {
        size_t left = source->len - at;
        int len = (int)peal_size_min(left, PIECE);
        bool last = left <= PIECE;
        if (XML_Parse(r->parser, source->text + at, len, last) == XML_STATUS_ERROR && !r->failed) {
            enum XML_Error code = XML_GetErrorCode(r->parser);
            struct peal_pos pos = {source, (uint32_t)XML_GetCurrentLineNumber(r->parser),
                                   (uint32_t)XML_GetCurrentColumnNumber(r->parser) + 1, 0};
            if (code == XML_ERROR_NO_MEMORY)
                r->base.status = PEAL_NO_MEMORY;
            else
                peal_diag_error(r->base.diags, pos, "not XML: %s", XML_ErrorString(code));
            r->failed = true;
        }
        if (last)
            break;
    }
}

enum peal_status peal_msccl_read(struct peal_import *import, struct peal_diags *diags)
{
    struct xml_reader r = {.base = {.import = import, .diags = diags, .status = PEAL_OK}};
    r.base.algo = PEAL_ARENA_NEW(&import->arena, struct msccl_algo);
    r.parser = XML_ParserCreate(NULL);
    if (!r.base.algo || !r.parser) {
        r.base.status = PEAL_NO_MEMORY;
        r.failed = true;
    } else {
        XML_SetUserData(r.parser, &r);
        XML_SetElementHandler(r.parser, on_start, on_end);
        XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
        parse(&r);
    }
    if (!r.failed)
        r.failed = !peal_msccl_order(&r.base);
    if (r.parser)
        XML_ParserFree(r.parser);
    peal_vec_release(&r.base.gpus);
    peal_vec_release(&r.base.tbs);
    peal_vec_release(&r.base.steps);
    if (!r.failed)
        import->msccl = r.base.algo;
    if (r.failed && r.base.status == PEAL_OK)
        return PEAL_INVALID;
    return r.base.status;
}
