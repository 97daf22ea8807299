/* SPDX-License-Identifier: Apache-2.0 */
/* The members of the table: how each is opened. A member makes its net and its own address, then is
 * given everyone's; peal_net_open does the exchange in between. */
#ifndef PEAL_RUN_MEMBERS_H
#define PEAL_RUN_MEMBERS_H

#include "run/net/net.h"

struct peal_net_member {
    const char *name;
    /* `where` is what follows the member's name and a colon in PEAL_NET, or "". */
    enum peal_status (*open)(const struct peal_net_config *config, const char *where,
                             struct peal_text *why, struct peal_net **out,
                             uint8_t address[static PEAL_NET_ADDRESS]);
    /* addresses[r * PEAL_NET_ADDRESS]: of rank r. */
    enum peal_status (*meet)(struct peal_net *net, const uint8_t *addresses);
};

enum peal_status peal_net_open_tcp(const struct peal_net_config *config, const char *where,
                                   struct peal_text *why, struct peal_net **out,
                                   uint8_t address[static PEAL_NET_ADDRESS]);
enum peal_status peal_net_meet_tcp(struct peal_net *net, const uint8_t *addresses);

/* Bytes of an address that TCP uses. */
enum { PEAL_NET_TCP_ADDRESS = 416 };

/* UCX: `where` is a device. */
enum peal_status peal_net_open_ucx(const struct peal_net_config *config, const char *where,
                                   struct peal_text *why, struct peal_net **out,
                                   uint8_t address[static PEAL_NET_ADDRESS]);
enum peal_status peal_net_meet_ucx(struct peal_net *net, const uint8_t *addresses);

#endif
