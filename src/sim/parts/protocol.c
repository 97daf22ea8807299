/* SPDX-License-Identifier: Apache-2.0 */
/* Protocols: what a message to another PE costs beside its way through engine and links, by its size.
 *
 * Collective libraries send small messages in another way than large ones (NCCL: LL, LL128, Simple; MPI:
 * eager, rendezvous). A protocol has a set-up, a speed, and a ramp: messages only reach full speed when
 * they are large, because what is cut into pieces and spread over channels grows with them. So n bytes
 * take
 *
 *   lat + ramp * n / (n + ramp_bytes)      before the engine moves the first byte, which it holds
 *   n at the slower of engine and protocol
 *
 * Notifies, and moves within a PE, are no messages.
 */
#include "sim/engine/engine.h"

bool peal_sim_protocols_cost(const struct peal_machine_keys *keys)
{
    bool any = false;
    for (int i = 0; i < PEAL_PROTOCOL_COUNT; i++)
        any |= keys->protocol_lat[i] || keys->protocol_ramp[i] || keys->protocol_bw[i].num;
    return any;
}

enum peal_protocol peal_sim_protocol(const struct peal_machine_keys *keys, uint64_t bytes)
{
    int protocol = 0;
    while (protocol < PEAL_PROTOCOL_SIMPLE &&
           (keys->protocol_to[protocol] == 0 || bytes > keys->protocol_to[protocol]))
        protocol++;
    return (enum peal_protocol)protocol;
}

uint64_t peal_sim_protocol_setup(const struct peal_machine_keys *keys, uint64_t bytes)
{
    enum peal_protocol p = peal_sim_protocol(keys, bytes);
    uint64_t ramp = keys->protocol_ramp[p];
    if (ramp && bytes) {
        struct peal_rate per_byte = {ramp, bytes + keys->protocol_ramp_bytes[p]};
        ramp = peal_rate_time(per_byte, bytes);
    } else {
        ramp = 0;
    }
    return keys->protocol_lat[p] + ramp;
}
