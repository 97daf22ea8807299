/* SPDX-License-Identifier: Apache-2.0 */
/* Queues of slots between two ranks: the two ends that the executor uses.
 *
 *   sender                                     receiver
 *   slot n % depth free? (credit, acquire)     slot n % depth filled? (seq == n + 1, acquire)
 *   payload, header, then seq = n + 1 (rel.)   use, then credit = n + 1 (release)
 */
#ifndef PEAL_RUN_CHANNEL_H
#define PEAL_RUN_CHANNEL_H

#include "run/exec/exec.h"

/* The number of a message's slot. */
static inline uint64_t peal_channel_slot_number(const struct peal_image_channel *channel,
                                                uint64_t message)
{
    return channel->mask ? message & channel->mask : message % channel->depth;
}

static inline struct peal_slot *peal_channel_slot(const struct peal_frame *frame,
                                                  const struct peal_image_channel *channel,
                                                  uint64_t message)
{
    uint64_t slot = peal_channel_slot_number(channel, message);
    return (struct peal_slot *)(frame->bases[channel->receiver].at + channel->slots +
                                slot * channel->stride);
}

static inline struct peal_cell *peal_channel_credit(const struct peal_frame *frame,
                                                    const struct peal_image_channel *channel)
{
    return (struct peal_cell *)(frame->bases[channel->sender].at + channel->credit);
}

static inline char *peal_slot_payload(struct peal_slot *slot,
                                      const struct peal_image_channel *channel)
{
    return channel->slot_bytes <= PEAL_SLOT_INLINE ? slot->payload : (char *)(slot + 1);
}

static inline bool peal_channel_can_send(const struct peal_frame *frame,
                                         const struct peal_image_channel *channel,
                                         struct peal_port_state *port)
{
    if (port->sent - port->credit < channel->depth)
        return true;
    /* Partner: peal_channel_free. Acquire: the receiver's reads of the slot are over. */
    port->credit =
        atomic_load_explicit(&peal_channel_credit(frame, channel)->value, memory_order_acquire);
    return port->sent - port->credit < channel->depth;
}

/* Does the slot hold the message of this number? They count from 1. */
static inline bool peal_slot_is_filled(const struct peal_slot *slot, uint64_t number)
{
    /* Partner: the release store in the executor's send. */
    return atomic_load_explicit(&slot->seq, memory_order_acquire) == number;
}

static inline void peal_channel_free(const struct peal_frame *frame,
                                     const struct peal_image_channel *channel,
                                     struct peal_port_state *port)
{
    port->freed++;
    /* Partner: peal_channel_can_send. */
    atomic_store_explicit(&peal_channel_credit(frame, channel)->value, port->freed,
                          memory_order_release);
}

#endif
