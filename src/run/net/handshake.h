/* SPDX-License-Identifier: Apache-2.0 */
/* How two ranks that connect prove to each other that they are of one job.
 *
 *   initiator                                    acceptor
 *   hello: who, to whom, job, versions, nonce →
 *                                              ← hello: the same of its own
 *   answer: proof, or a reason for refusal     →
 *                                              ← answer: proof, or a reason for refusal
 *
 * A proof is an HMAC under the job's secret of both hellos and the side that makes it: each side proves
 * that it knows the secret, for this connection, these ranks, this job and these versions, and a proof
 * fits neither another connection nor the other direction. The initiator proves itself first: strangers get
 * nothing that depends on the secret. Keys of encrypted connections come from the same hellos, one per
 * direction.
 *
 * Nothing of a peer is believed before its proof, except that it cannot speak this protocol. The messages
 * have fixed sizes, and nothing here touches sockets.
 */
#ifndef PEAL_RUN_HANDSHAKE_H
#define PEAL_RUN_HANDSHAKE_H

#include "run/net/crypto.h"
#include "run/net/net.h"

enum peal_hello_kind { PEAL_HELLO_DATA = 1, PEAL_HELLO_WATCH = 2 };
enum { PEAL_NET_NONCE = 32, PEAL_NET_VERSION_TEXT = 64, PEAL_NET_VERSIONS = 3 };

struct peal_net_hello {
    char magic[8];
    uint32_t protocol;
    uint32_t byte_order;
    uint32_t kind; /* enum peal_hello_kind */
    uint32_t from, to, size;
    uint32_t crypt;
    uint32_t zero;
    uint8_t job[32];
    uint8_t nonce[PEAL_NET_NONCE];
    char versions[PEAL_NET_VERSIONS][PEAL_NET_VERSION_TEXT]; /* library, kernels, tune; with NULs */
};
static_assert(sizeof(struct peal_net_hello) == 40 + 64 + 192, "a hello has no padding");

enum peal_hello_code {
    PEAL_HELLO_PROOF = 1, /* with a proof */
    PEAL_HELLO_REFUSED,   /* with the reason */
    PEAL_HELLO_YIELD      /* this rank's own connection is under way: wait for it */
};
struct peal_net_hello_answer {
    uint32_t code;
    uint32_t status; /* refused: enum peal_status */
    uint8_t proof[PEAL_MAC];
    char words[216];
};
static_assert(sizeof(struct peal_net_hello_answer) == 256, "an answer has no padding");

/* What a rank states about itself; `to`, `kind` and the nonce differ per connection. */
struct peal_net_identity {
    struct peal_net_hello hello;
    uint8_t key[PEAL_MAC]; /* made from the secret */
};

/* PEAL_UNSUPPORTED: no cryptography; PEAL_INVALID: no secret. */
enum peal_status peal_identity_init(struct peal_net_identity *out,
                                    const struct peal_net_config *config, struct peal_text *why);
/* The hello for one connection, with a new nonce; false: the system has no random bytes. */
bool peal_hello_make(const struct peal_net_identity *identity, uint32_t to,
                     enum peal_hello_kind kind, struct peal_net_hello *out);
/* What can be checked before any proof: the protocol, the job, and that this rank is meant. PEAL_OK, or a status
 * and a reason for both sides. */
enum peal_status peal_hello_check(const struct peal_net_hello *own,
                                  const struct peal_net_hello *theirs, struct peal_text *why);
/* What is compared only after the proof: versions and settings that must be equal. */
enum peal_status peal_hello_compare(const struct peal_net_hello *own,
                                    const struct peal_net_hello *theirs, struct peal_text *why);
/* `initiator`: which side's proof. */
bool peal_hello_prove(const struct peal_net_identity *identity, const struct peal_net_hello *first,
                      const struct peal_net_hello *second, bool initiator,
                      uint8_t out[static PEAL_MAC]);
/* The key of what the initiator, or the acceptor, sends. */
bool peal_hello_key(const struct peal_net_identity *identity, const struct peal_net_hello *first,
                    const struct peal_net_hello *second, bool initiator,
                    uint8_t out[static PEAL_CIPHER_KEY]);
/* Makes text from a stranger printable and ended. */
void peal_hello_clean(char *words, size_t cap);

#endif
