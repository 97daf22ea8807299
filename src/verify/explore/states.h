/* SPDX-License-Identifier: Apache-2.0 */
/* The set of states that a search has seen. States are kept whole, not as hashes, so that different
 * states are never confused. */
#ifndef PEAL_VERIFY_STATES_H
#define PEAL_VERIFY_STATES_H

#include "base/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct states {
    size_t key_bytes;
    uint64_t max_states, max_bytes;
    unsigned char *keys; /* one after the other */
    size_t count, room;
    struct peal_index index;
    bool full; /* a limit was reached: the search is not complete */
};

void peal_states_init(struct states *s, size_t key_bytes, uint64_t max_states, uint64_t max_bytes);
void peal_states_release(struct states *s);
/* Forgets all states, but keeps the memory. */
void peal_states_clear(struct states *s);
/* True if the state is new; it is then in the set. */
bool peal_states_add(struct states *s, const unsigned char *key);

#endif
