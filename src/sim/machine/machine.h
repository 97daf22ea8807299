/* SPDX-License-Identifier: Apache-2.0 */
/* A machine file, read, checked and resolved. The keys are the rows of machine.def.
 *
 *   text --libyaml--> document --machine.def--> struct peal_machine --> graph
 *   another program's file --topology/read--> graph, keys
 *
 * Units are in the key names. Bandwidths become exact rationals (picoseconds per byte), times whole
 * picoseconds; a value that cannot be exact is an error, and is never rounded silently.
 */
#ifndef PEAL_SIM_MACHINE_H
#define PEAL_SIM_MACHINE_H

#include "base/base.h"
#include "plan/plan.h"
#include "topology/topology.h"

#include <stdbool.h>
#include <stdint.h>

enum peal_level {
    PEAL_LEVEL_PE,
    PEAL_LEVEL_CUBE,
    PEAL_LEVEL_SIP,
    PEAL_LEVEL_FLAT,
    PEAL_LEVEL_COUNT
}; /* whose links have keys of their own */
enum peal_memory { PEAL_MEM_TCM, PEAL_MEM_SRAM, PEAL_MEM_HBM, PEAL_MEM_COUNT };
enum peal_embed { PEAL_EMBED_ROW_MAJOR, PEAL_EMBED_SNAKE, PEAL_EMBED_RING, PEAL_EMBED_TREE };
enum peal_link_mode { PEAL_LINK_CUT_THROUGH, PEAL_LINK_STORE_AND_FORWARD, PEAL_LINK_FLUID };
enum peal_arb { PEAL_ARB_INDEPENDENT, PEAL_ARB_RR, PEAL_ARB_PRIORITY };
enum peal_backpressure { PEAL_SLEEP, PEAL_POLL };
/* How a message is sent; which one it is follows from its size. Named as in NCCL. */
enum peal_protocol {
    PEAL_PROTOCOL_LL,
    PEAL_PROTOCOL_LL128,
    PEAL_PROTOCOL_SIMPLE,
    PEAL_PROTOCOL_COUNT
};
enum peal_credit_mode { PEAL_CREDIT_FAST, PEAL_CREDIT_FABRIC, PEAL_CREDIT_ZERO };

/* Rates by bytes, rising; between two points they change evenly. count 0: none. */
enum { PEAL_MACHINE_CURVE_POINTS = 16 };
struct peal_machine_curve {
    uint64_t count;
    struct {
        uint64_t bytes;
        struct peal_rate rate;
    } at[PEAL_MACHINE_CURVE_POINTS];
};

/* Values from the file or its defaults. Every member is a row of machine.def. */
struct peal_machine_keys {
    uint64_t flat;   /* PEs on one switch; if set, the other topology keys are not used */
    uint64_t routes; /* enum peal_route_rule + 1; 0 = the graph's own */
    uint64_t sips, cubes[2], pes[2];
    uint64_t wrap[3]; /* per level: 1 = closed */
    struct peal_rate link_bw[PEAL_LEVEL_COUNT];
    uint64_t link_lat[PEAL_LEVEL_COUNT];
    uint64_t link_mode, fluid_weight;
    uint64_t slots, slot_bytes, header_bytes, space, backpressure, poll, wake;
    uint64_t dma_setup, dma_arb, dma_packet, dma_queue;
    struct peal_rate dma_bw;
    uint64_t protocol_to[PEAL_PROTOCOL_SIMPLE]; /* SIMPLE takes what is left */
    uint64_t protocol_lat[PEAL_PROTOCOL_COUNT], protocol_ramp[PEAL_PROTOCOL_COUNT],
        protocol_ramp_bytes[PEAL_PROTOCOL_COUNT];
    struct peal_rate protocol_bw[PEAL_PROTOCOL_COUNT];
    uint64_t credit_mode, credit_bytes;
    struct peal_rate mem_bw[PEAL_MEM_COUNT];
    uint64_t mem_lat[PEAL_MEM_COUNT], mem_ports[PEAL_MEM_COUNT], mem_shared[PEAL_MEM_COUNT];
    struct peal_rate math_cycle;
    uint64_t math_lanes[PEAL_DTYPES], math_products, math_setup;
    uint64_t issue, math_async, send_async, recv_async;
    uint64_t order, delay, delay_pair[2]; /* order: 0 windows, 1 pairwise */
    uint64_t notify_bytes, request_bytes;
    uint64_t place_param, place_window, place_private, place_tile;
    struct peal_machine_curve host_copy, host_fetch, host_reduce, host_push, host_kernel;
    uint64_t host_kernel_ps, host_op, host_params, host_cores, host_switch;
    const char *algorithm;
    uint64_t launch, ranks, embed;
    uint64_t data;
};

enum peal_machine_key {
#define KEY(ID, path, field, kind, fallback, min, max, words, meaning) PEAL_KEY_##ID,
#include "sim/machine/machine.def"
    PEAL_KEY_COUNT
};

struct peal_machine {
    struct peal_arena arena;
    const char *name; /* of the file, for messages */
    struct peal_machine_keys keys;
    bool given[PEAL_KEY_COUNT]; /* by the file or --set; others have their default, or no value */
    struct peal_graph *graph;   /* of every machine: its nodes, links and routes */
    bool has_own_graph;         /* it was given, and does not follow from keys */
    uint32_t rule;              /* of that graph, without topology.routes */
    const char *topology_text;  /* how a machine file gives it, or NULL */
    uint32_t pes;               /* of the whole machine */
};

enum {
    PEAL_MACHINE_MAX_PES = 65536,
    PEAL_MACHINE_MAX_BYTES = 1 << 20 /* of a machine file */
};

/* Reads a machine text. Errors are collected with file:line:col; PEAL_INVALID then. */
enum peal_status peal_machine_read(const struct peal_source *source, struct peal_diags *diags,
                                   struct peal_machine **out);
/* `path`: a file (a machine file, or one that src/topology/read recognises), or without '/' and '.'
 * the name of a built-in machine. */
enum peal_status peal_machine_open(const char *path, struct peal_diags *diags,
                                   struct peal_machine **out);
void peal_machine_free(struct peal_machine *machine);

/* The built-in machines: "machines/mesh4x4.yaml" and its text. */
extern const struct peal_source peal_machine_texts[];
extern const size_t peal_machine_text_count;
/* One of them by its name, "mesh4x4". NULL after a diagnostic. */
const struct peal_source *peal_machine_builtin(const char *name, struct peal_diags *diags);

/* "key=value" settings: "links.pe.bw_GBps=64". They are checked as in a file, together. On
 * PEAL_INVALID the machine is unchanged. */
enum peal_status peal_machine_set(struct peal_machine *machine, const char *const *settings,
                                  size_t count, struct peal_diags *diags);

/* Path of a key ("dma.setup_ps"), and its value as in a machine file (empty: none). */
const char *peal_machine_key_path(enum peal_machine_key key);
void peal_machine_key_value(const struct peal_machine *machine, enum peal_machine_key key,
                            struct peal_text *out);

/* The resolved machine as a machine file. */
void peal_machine_print(const struct peal_machine *machine, struct peal_text *out);

/* The number of ranks that the machine is made for: ccl.ranks, or one per PE. */
uint32_t peal_machine_ranks(const struct peal_machine *machine);
/* The PE of every rank, by ccl.embed. False: out of memory. */
bool peal_machine_place(const struct peal_machine *machine, uint32_t nranks, uint32_t *pe_of_rank);
/* Some of the ranks of a machine, as a group of its own. */
struct peal_machine_group {
    uint32_t nranks;         /* of the group */
    uint32_t world;          /* of the machine */
    const uint32_t *members; /* each one's rank in the machine; NULL: 0, 1, ... */
};
/* The SIP and the cube of every rank of a group, in the arena; their numbers have no gaps, even
 * where ranks are fewer than PEs. A flat machine is one cube. False: out of memory. */
bool peal_machine_places(const struct peal_machine *machine, const struct peal_machine_group *group,
                         struct peal_arena *arena, struct peal_places *out);

/* Multiplications per cycle in a matmul of that type, f32 or f64; at least 1. */
uint64_t peal_machine_products(const struct peal_machine_keys *keys, enum peal_dtype dtype);

#endif
