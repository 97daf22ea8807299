/* SPDX-License-Identifier: Apache-2.0 */
/* Where a rank listens, and which of a peer's addresses to try: those of the interfaces that PEAL_NET
 * names, or of all that are up, in an order that puts what routes to the peer first.
 *
 * An address block is what ranks exchange when they meet: up to PEAL_ADDRESSES addresses with ports, and a
 * word that says which network stack they are of, so that loopback is tried by those on the same one only.
 */
#ifndef PEAL_RUN_ADDRESS_H
#define PEAL_RUN_ADDRESS_H

#include "run/net/net.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { PEAL_ADDRESSES = 16, PEAL_LISTENERS = 16, PEAL_NET_FILTERS = 8 };

struct peal_address {
    uint16_t family; /* 4 or 6 */
    uint16_t port;
    uint32_t loopback;
    uint8_t bytes[16];
};
struct peal_address_block {
    uint64_t stack; /* hash of boot and network namespace */
    uint32_t count;
    uint32_t zero;
    struct peal_address at[PEAL_ADDRESSES];
};
static_assert(sizeof(struct peal_address_block) <= PEAL_NET_ADDRESS, "it fits an address");

/* Which interfaces: by name, address or subnet. None: all that are up. */
struct peal_address_filter {
    uint32_t count;
    struct {
        char name[64];
        bool subnet;
        struct peal_address address;
        uint32_t prefix; /* bits */
    } at[PEAL_NET_FILTERS];
};
/* "eth0,10.0.0.0/8,fd00::1": PEAL_INVALID with a line in `why` if an entry is neither. "" is no filter. */
enum peal_status peal_address_parse(const char *text, struct peal_address_filter *out,
                                    struct peal_text *why);

/* Listens on all of them; fds[0 .. *count-1] are non-blocking. */
enum peal_status peal_address_listen(const struct peal_address_filter *filter,
                                     struct peal_address_block *block,
                                     int fds[static PEAL_LISTENERS], uint32_t *count,
                                     struct peal_text *why);
/* Orders the peer's addresses by how likely they lead there, and leaves out those that cannot; returns how many
 * are left. `theirs` comes from outside. */
uint32_t peal_address_order(const struct peal_address_block *own,
                            const struct peal_address_block *theirs,
                            struct peal_address out[static PEAL_ADDRESSES]);
/* As the system has it; returns the length. */
socklen_t peal_address_socket(const struct peal_address *address, struct sockaddr_storage *out);
void peal_address_print(const struct sockaddr_storage *address, char out[static 64]);
/* The identity of this boot of the system; "": not known. */
void peal_address_boot(char out[static 64]);

#endif
