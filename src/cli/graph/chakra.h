/* SPDX-License-Identifier: Apache-2.0 */
/* Chakra execution traces (mlcommons/chakra, et_def.proto): a file per rank, each a sequence of messages
 * in protobuf's wire format with their lengths before them; GlobalMetadata first, then Nodes.
 *
 *   chakra_read.c    one file -> nodes, checked; a small decoder with limits
 *   chakra_graph.c   nodes of all ranks -> the text of a graph file (graph_file.h)
 *   chakra_open.c    the files of a command: NAME.0.et, NAME.1.et, ..., unpacked
 *
 * A computation with a duration takes that long on its rank. A send and the recv that it belongs to (by
 * ranks, tag and order) are one message. Collectives of a process group are matched by their order. What a
 * graph cannot say is reported as a note: loads and stores of memory, durations that are missing, groups
 * with ranks that have no file.
 */
#ifndef PEAL_CLI_CHAKRA_H
#define PEAL_CLI_CHAKRA_H

#include "base/base.h"

#include <peal/types.h>

enum {
    PEAL_CHAKRA_MAX_RANKS = 256,
    PEAL_CHAKRA_MAX_NODES = 1 << 18, /* of all ranks */
    PEAL_CHAKRA_MAX_DEPS = 1 << 20,
    PEAL_CHAKRA_MAX_BYTES = 256 << 20 /* of a file */
};

enum peal_chakra_type { /* the schema's numbers */
                        PEAL_CHAKRA_METADATA = 1,
                        PEAL_CHAKRA_LOAD,
                        PEAL_CHAKRA_STORE,
                        PEAL_CHAKRA_COMP,
                        PEAL_CHAKRA_SEND,
                        PEAL_CHAKRA_RECV,
                        PEAL_CHAKRA_COLL
};

struct peal_chakra_node {
    uint64_t id;
    const char *name, *group; /* "": none */
    enum peal_chakra_type type;
    uint64_t duration;                 /* microseconds */
    uint32_t first_dep, ndeps;         /* of the trace's deps: ids, then (after link) indices */
    int64_t comm, size, src, dst, tag; /* -1: not given */
};

struct peal_chakra {
    struct peal_arena arena;
    PEAL_VEC(struct peal_chakra_node) nodes; /* rank by rank */
    PEAL_VEC(uint64_t) deps;
    uint32_t ranks;
    uint32_t first[PEAL_CHAKRA_MAX_RANKS + 1]; /* rank r's nodes: first[r] to first[r + 1] */
};

void peal_chakra_init(struct peal_chakra *trace);
void peal_chakra_release(struct peal_chakra *trace);
/* Adds the next rank's file. Errors name the message and its byte. */
enum peal_status peal_chakra_add(struct peal_chakra *trace, const struct peal_source *source,
                                 struct peal_diags *diags);
/* The graph file, and what it does not say: a note a line. */
enum peal_status peal_chakra_graph(struct peal_chakra *trace, struct peal_diags *diags,
                                   struct peal_text *out, struct peal_text *notes);

struct peal_cli;
/* Is it a trace, by its name? */
bool peal_chakra_names(const char *path);
/* The graph file's text, in the command's arena, made of a trace and of its neighbours in number; notes are
 * printed. False after a message. */
bool peal_chakra_open(const struct peal_cli *cli, const char *path, struct peal_source *out);

#endif
