/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of peal exec --hosts on a pair of descriptors that never block: what cannot be written
 * yet is kept, and what has arrived is handed out in whole messages. */
#ifndef PEAL_CLI_WIRE_H
#define PEAL_CLI_WIRE_H

#include "base/base.h"
#include "run/run.h"

#define PEAL_WIRE_GREETING "peal agent 1\n"

struct peal_wire {
    int in, out; /* may be the same; -1: closed */
    struct peal_text received, unsent;
    size_t taken; /* bytes of `received` that were handed out */
    bool broken;  /* the other side has ended, or violates the protocol */
};

/* Both descriptors become non-blocking and belong to the wire. */
void peal_wire_init(struct peal_wire *wire, int in, int out);
void peal_wire_release(struct peal_wire *wire);
void peal_wire_put(struct peal_wire *wire, uint32_t kind, uint32_t rank, const void *bytes,
                   size_t len);
/* Writes as much as possible. */
void peal_wire_flush(struct peal_wire *wire);
/* Reads what has arrived. */
void peal_wire_fill(struct peal_wire *wire);
/* Drops everything up to and including a line with this text. True when that has arrived. A remote
 * shell may have printed something first. */
bool peal_wire_skip(struct peal_wire *wire, const char *line);
/* The next whole message. False: there is none (yet). *bytes is valid until the next fill. */
bool peal_wire_next(struct peal_wire *wire, struct peal_hosts_head *head, const uint8_t **bytes);

#endif
