/* SPDX-License-Identifier: Apache-2.0 */
/* See handshake.h. */
#include "run/net/handshake.h"

#include <stdio.h>
#include <string.h>

#define BYTE_ORDER_MARK UINT32_C(0x01020304)

static const char magic[8] = {'p', 'e', 'a', 'l', 'n', 'e', 't', '\n'};

/* Words that keep proofs, keys and directions apart. */
static const char *const labels[2][2] = {{"peal acceptor proof", "peal initiator proof"},
                                         {"peal acceptor key", "peal initiator key"}};

static void put_version(struct peal_net_hello *hello, int place, const char *text)
{
    snprintf(hello->versions[place], PEAL_NET_VERSION_TEXT, "%s", text ? text : "");
}

enum peal_status peal_identity_init(struct peal_net_identity *out,
                                    const struct peal_net_config *config, struct peal_text *why)
{
    static const char label[] = "peal job key 1";
    struct peal_net_hello *hello = &out->hello;
    enum peal_status status = peal_crypto_load(why);
    if (status != PEAL_OK)
        return status;
    if (!config->secret) {
        peal_text_puts(why, "ranks on several hosts need a secret that all of them know");
        return PEAL_INVALID;
    }
    memset(out, 0, sizeof *out);
    memcpy(hello->magic, magic, sizeof magic);
    hello->protocol = PEAL_NET_PROTOCOL;
    hello->byte_order = BYTE_ORDER_MARK;
    hello->from = config->rank;
    hello->size = config->size;
    hello->crypt = config->crypt;
    put_version(hello, 0,
                config->versions.library ? config->versions.library : peal_version_text());
    put_version(hello, 1, config->versions.kernels);
    put_version(hello, 2, config->versions.tune);
    const char *job = config->job ? config->job : "";
    if (!peal_mac(config->secret, "peal job name", 13, job, strlen(job), hello->job) ||
        !peal_mac(config->secret, label, sizeof label, NULL, 0, out->key)) {
        peal_text_puts(why, "libcrypto does not make an HMAC with SHA-256");
        return PEAL_UNSUPPORTED;
    }
    return PEAL_OK;
}

bool peal_hello_make(const struct peal_net_identity *identity, uint32_t to,
                     enum peal_hello_kind kind, struct peal_net_hello *out)
{
    *out = identity->hello;
    out->to = to;
    out->kind = kind;
    return peal_random_bytes(out->nonce, sizeof out->nonce);
}

enum peal_status peal_hello_check(const struct peal_net_hello *own,
                                  const struct peal_net_hello *theirs, struct peal_text *why)
{
    if (memcmp(theirs->magic, magic, sizeof magic) != 0) {
        peal_text_puts(why, "it does not speak Peal's protocol");
        return PEAL_INVALID;
    }
    if (theirs->byte_order != BYTE_ORDER_MARK) {
        peal_text_puts(why, "it has another byte order");
        return PEAL_MISMATCH;
    }
    if (theirs->protocol != own->protocol) {
        peal_text_printf(why, "it has version %u of the protocol, this rank has %u",
                         theirs->protocol, own->protocol);
        return PEAL_MISMATCH;
    }
    bool known = theirs->kind == PEAL_HELLO_DATA || theirs->kind == PEAL_HELLO_WATCH;
    if (!known || theirs->size != own->size || theirs->to != own->from ||
        theirs->from >= own->size || theirs->from == own->from) {
        peal_text_printf(why,
                         "it says it is rank %u of %u and looks for rank %u, this is rank %u of %u",
                         theirs->from, theirs->size, theirs->to, own->from, own->size);
        return PEAL_INVALID;
    }
    if (memcmp(theirs->job, own->job, sizeof own->job) != 0) {
        peal_text_puts(why, "it is of another job, or has another secret");
        return PEAL_INVALID;
    }
    return PEAL_OK;
}

enum peal_status peal_hello_compare(const struct peal_net_hello *own,
                                    const struct peal_net_hello *theirs, struct peal_text *why)
{
    static const char *const names[PEAL_NET_VERSIONS] = {"version of libpeal", "kernel library",
                                                         "table of algorithms"};
    for (int i = 0; i < PEAL_NET_VERSIONS; i++) {
        const char *a = own->versions[i], *b = theirs->versions[i];
        if (strncmp(a, b, PEAL_NET_VERSION_TEXT) == 0)
            continue;
        peal_text_printf(why, "rank %u has another %s than rank %u ('%.12s', '%.12s')",
                         theirs->from, names[i], own->from, b, a);
        return PEAL_MISMATCH;
    }
    if (own->crypt != theirs->crypt) {
        peal_text_printf(why, "PEAL_NET_CRYPT is %u on rank %u and %u on rank %u", theirs->crypt,
                         theirs->from, own->crypt, own->from);
        return PEAL_MISMATCH;
    }
    return PEAL_OK;
}

static bool derive(const struct peal_net_identity *identity, const struct peal_net_hello *first,
                   const struct peal_net_hello *second, const char *label, uint8_t *out)
{
    uint8_t step[PEAL_MAC];
    struct peal_net_hello both[2] = {*first, *second};
    return peal_mac(identity->key, label, strlen(label), NULL, 0, step) &&
           peal_mac(step, both, sizeof both, NULL, 0, out);
}

bool peal_hello_prove(const struct peal_net_identity *identity, const struct peal_net_hello *first,
                      const struct peal_net_hello *second, bool initiator,
                      uint8_t out[static PEAL_MAC])
{
    return derive(identity, first, second, labels[0][initiator], out);
}

bool peal_hello_key(const struct peal_net_identity *identity, const struct peal_net_hello *first,
                    const struct peal_net_hello *second, bool initiator,
                    uint8_t out[static PEAL_CIPHER_KEY])
{
    return derive(identity, first, second, labels[1][initiator], out);
}

void peal_hello_clean(char *words, size_t cap)
{
    words[cap - 1] = '\0';
    for (char *at = words; *at; at++) {
        if (*at < ' ' || *at > '~')
            *at = '?';
    }
}
