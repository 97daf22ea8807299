/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf's wire format: a key (field << 3 | type) and a value, again and again. Fields that are not known
 * are passed over, as protobuf wants. */
#include "cli/graph/chakra.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum chakra_wire { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

/* A part of the file, and where in it. */
struct chakra_bytes {
    const unsigned char *at, *end;
};

struct chakra_field {
    uint32_t number;
    enum chakra_wire wire;
    uint64_t value; /* of VARINT, 64 and 32 */
    struct chakra_bytes bytes;
};

struct chakra_reader {
    struct peal_chakra *trace;
    const struct peal_source *source;
    struct peal_diags *diags;
    uint64_t message;
    bool no_memory;
};

static bool refuse(struct chakra_reader *r, const unsigned char *at, const char *why)
{
    peal_diag_error(r->diags, (struct peal_pos){0}, "%s: message %" PRIu64 ", byte %zu: %s",
                    r->source->name, r->message,
                    (size_t)(at - (const unsigned char *)r->source->text), why);
    return false;
}

static bool read_varint(struct chakra_bytes *b, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && b->at < b->end; shift += 7) {
        unsigned char byte = *b->at++;
        *out |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return shift < 63 || byte < 2;
    }
    return false;
}

static bool read_fixed(struct chakra_bytes *b, unsigned size, uint64_t *out)
{
    *out = 0;
    if ((size_t)(b->end - b->at) < size)
        return false;
    for (unsigned i = 0; i < size; i++)
        *out |= (uint64_t)*b->at++ << 8 * i;
    return true;
}

static bool read_field(struct chakra_bytes *b, struct chakra_field *out)
{
    uint64_t key, len;
    if (!read_varint(b, &key) || key >> 3 == 0 || key >> 3 > 1 << 20)
        return false;
    *out =
        (struct chakra_field){.number = (uint32_t)(key >> 3), .wire = (enum chakra_wire)(key & 7)};
    switch (out->wire) {
    case WIRE_VARINT:
        return read_varint(b, &out->value);
    case WIRE_64:
        return read_fixed(b, 8, &out->value);
    case WIRE_32:
        return read_fixed(b, 4, &out->value);
    case WIRE_BYTES:
        if (!read_varint(b, &len) || len > (uint64_t)(b->end - b->at))
            return false;
        out->bytes = (struct chakra_bytes){b->at, b->at + len};
        b->at += len;
        return true;
    }
    return false;
}

static const char *keep(struct chakra_reader *r, struct chakra_bytes bytes)
{
    enum { MAX_NAME = 200 };
    size_t len = peal_size_min((size_t)(bytes.end - bytes.at), MAX_NAME);
    const char *copy = peal_arena_copy(&r->trace->arena, (const char *)bytes.at, len);
    r->no_memory |= !copy;
    return copy ? copy : "";
}

static bool is_text(struct chakra_bytes bytes, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(bytes.end - bytes.at) == len && memcmp(bytes.at, text, len) == 0;
}

/* An attribute: its name, and one value of many types. sint32 and sint64 are zigzag. */
static bool read_attribute(struct chakra_reader *r, struct chakra_bytes b,
                           struct peal_chakra_node *node)
{
    enum { NAME = 1, SINT32 = 15, SINT64 = 17, STRING = 29 };
    struct chakra_field field;
    struct chakra_bytes name = {0}, text = {0};
    int64_t value = -1;
    while (b.at < b.end) {
        const unsigned char *at = b.at;
        if (!read_field(&b, &field))
            return refuse(r, at, "not an attribute");
        if (field.number == NAME)
            name = field.bytes;
        else if (field.number == STRING)
            text = field.bytes;
        else if (field.number == SINT32 || field.number == SINT64)
            value = (int64_t)(field.value >> 1) ^ -(int64_t)(field.value & 1);
        else if (field.wire != WIRE_BYTES)
            value = (int64_t)field.value;
    }
    struct {
        const char *name;
        int64_t *out;
    } known[] = {{"comm_type", &node->comm},
                 {"comm_size", &node->size},
                 {"comm_src", &node->src},
                 {"comm_dst", &node->dst},
                 {"comm_tag", &node->tag}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (name.at && is_text(name, known[i].name))
            *known[i].out = value;
    }
    if (name.at && text.at && is_text(name, "pg_name"))
        node->group = keep(r, text);
    return true;
}

/* repeated uint64: packed, or one by one. */
static bool read_deps(struct chakra_reader *r, struct chakra_field *field,
                      struct peal_chakra_node *node)
{
    struct chakra_bytes b = field->bytes;
    bool packed = field->wire == WIRE_BYTES;
    do {
        uint64_t id = field->value;
        if (packed && b.at == b.end)
            break;
        if (packed && !read_varint(&b, &id))
            return refuse(r, b.at, "not a list of dependencies");
        if (r->trace->deps.len == PEAL_CHAKRA_MAX_DEPS)
            return refuse(r, b.at ? b.at : field->bytes.at, "too many dependencies");
        r->no_memory |= !peal_vec_push(&r->trace->deps, id);
        node->ndeps++;
    } while (packed && !r->no_memory);
    return true;
}

static bool read_node(struct chakra_reader *r, struct chakra_bytes b)
{
    enum { ID = 1, NAME, TYPE, CTRL_DEPS, DATA_DEPS, START, DURATION, ATTR = 10 };
    struct peal_chakra_node node = {.name = "", .group = "", .comm = -1, .size = -1};
    struct chakra_field field;
    node.src = node.dst = node.tag = -1;
    node.first_dep = (uint32_t)r->trace->deps.len;
    const unsigned char *begin = b.at;
    while (b.at < b.end && !r->no_memory) {
        const unsigned char *at = b.at;
        bool good = true;
        if (!read_field(&b, &field))
            return refuse(r, at, "not a node of a trace");
        if (field.number == ID)
            node.id = field.value;
        else if (field.number == NAME && field.wire == WIRE_BYTES)
            node.name = keep(r, field.bytes);
        else if (field.number == TYPE)
            node.type = (enum peal_chakra_type)field.value;
        else if (field.number == CTRL_DEPS || field.number == DATA_DEPS)
            good = read_deps(r, &field, &node);
        else if (field.number == DURATION)
            node.duration = field.value;
        else if (field.number == ATTR && field.wire == WIRE_BYTES)
            good = read_attribute(r, field.bytes, &node);
        if (!good)
            return false;
    }
    if (node.type < PEAL_CHAKRA_METADATA || node.type > PEAL_CHAKRA_COLL)
        return refuse(r, begin, "a node of an unknown type");
    if (r->trace->nodes.len == PEAL_CHAKRA_MAX_NODES)
        return refuse(r, begin, "too many nodes");
    r->no_memory |= !peal_vec_push(&r->trace->nodes, node);
    return true;
}

/* Ids become indices. */
static int compare_ids(const void *a, const void *b)
{
    const struct peal_chakra_node *x = *(struct peal_chakra_node *const *)a;
    const struct peal_chakra_node *y = *(struct peal_chakra_node *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static bool link_deps(struct chakra_reader *r, uint32_t first, uint32_t first_dep)
{
    struct peal_chakra *trace = r->trace;
    size_t count = trace->nodes.len - first;
    struct peal_chakra_node **sorted = malloc((count + 1) * sizeof *sorted);
    bool good = sorted != NULL;
    r->no_memory |= !sorted;
    for (size_t i = 0; good && i < count; i++)
        sorted[i] = &trace->nodes.at[first + i];
    if (good && count)
        qsort(sorted, count, sizeof *sorted, compare_ids);
    for (size_t i = 1; good && i < count; i++) {
        if (sorted[i]->id == sorted[i - 1]->id) {
            peal_diag_error(r->diags, (struct peal_pos){0}, "%s: two nodes have the id %" PRIu64,
                            r->source->name, sorted[i]->id);
            good = false;
        }
    }
    for (size_t d = first_dep; good && d < trace->deps.len; d++) {
        size_t low = 0, high = count;
        while (low < high) {
            size_t middle = (low + high) / 2;
            if (sorted[middle]->id < trace->deps.at[d])
                low = middle + 1;
            else
                high = middle;
        }
        /* A node that is not in the file has nothing to wait for. */
        bool found = low < count && sorted[low]->id == trace->deps.at[d];
        trace->deps.at[d] = found ? (uint64_t)(sorted[low] - trace->nodes.at) : UINT64_MAX;
    }
    free(sorted);
    return good;
}

void peal_chakra_init(struct peal_chakra *trace)
{
    *trace = (struct peal_chakra){0};
    peal_arena_init(&trace->arena, 0);
}

void peal_chakra_release(struct peal_chakra *trace)
{
    peal_vec_release(&trace->nodes);
    peal_vec_release(&trace->deps);
    peal_arena_release(&trace->arena);
}

enum peal_status peal_chakra_add(struct peal_chakra *trace, const struct peal_source *source,
                                 struct peal_diags *diags)
{
    struct chakra_reader r = {.trace = trace, .source = source, .diags = diags};
    const unsigned char *text = (const unsigned char *)source->text;
    struct chakra_bytes b = {text, text + source->len};
    uint32_t first = (uint32_t)trace->nodes.len, first_dep = (uint32_t)trace->deps.len;
    bool good = trace->ranks < PEAL_CHAKRA_MAX_RANKS || refuse(&r, text, "too many ranks");
    for (; good && b.at < b.end && !r.no_memory; r.message++) {
        const unsigned char *at = b.at;
        uint64_t size;
        if (!read_varint(&b, &size) || size > (uint64_t)(b.end - b.at)) {
            good = refuse(&r, at, "the length of a message is more than what is left of the file");
            break;
        }
        struct chakra_bytes message = {b.at, b.at + size};
        b.at += size;
        if (r.message > 0) /* the first one is GlobalMetadata */
            good = read_node(&r, message);
    }
    good = good && !r.no_memory && link_deps(&r, first, first_dep);
    if (!good)
        return r.no_memory ? PEAL_NO_MEMORY : PEAL_INVALID;
    trace->first[++trace->ranks] = (uint32_t)trace->nodes.len;
    return PEAL_OK;
}
