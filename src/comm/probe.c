/* SPDX-License-Identifier: Apache-2.0 */
/* Messages in both directions at once, and messages that are examined before they are received. */
#include "comm/core/communicator.h"

enum peal_status peal_sendrecv(struct peal_comm *comm, const struct peal_message *out,
                               struct peal_message *in)
{
    struct peal_request *recv = NULL, *send = NULL;
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if (!out || !in || (in->bytes > 0 && !in->data))
        return peal_comm_fail(comm, PEAL_INVALID, "sendrecv: no message, or no buffer");
    if (out->struct_size > sizeof *out || in->struct_size > sizeof *in)
        return peal_comm_fail(comm, PEAL_UNSUPPORTED,
                              "sendrecv: a message has fields that this libpeal does not know");
    struct peal_letter wanted = {.peer = in->rank, .tag = in->tag};
    status = peal_letter_check(comm, &wanted); /* before anything leaves */
    if (status == PEAL_OK)
        status = peal_isend(comm, out->data, out->bytes, out->rank, out->tag, &send);
    if (status != PEAL_OK)
        return status;
    status = peal_irecv(comm, in->data, in->bytes, in->rank, in->tag, &recv);
    if (status == PEAL_OK)
        status = peal_request_wait_recv(recv, &in->bytes, &in->rank);
    enum peal_status sent = peal_request_wait(send);
    if (status != PEAL_OK)
        return status;
    return sent;
}

static enum peal_status tell(const struct peal_comm *comm, const struct peal_letter *letter,
                             uint64_t *bytes, uint32_t *sender)
{
    if (bytes)
        *bytes = letter->length - peal_letter_overhead(comm);
    if (sender)
        *sender = letter->sender;
    return PEAL_OK;
}

enum peal_status peal_probe(struct peal_comm *comm, uint32_t from, uint32_t tag, uint64_t *bytes,
                            uint32_t *sender)
{
    struct peal_letter letter = {.probes = true, .peer = from, .tag = tag};
    enum peal_status status = peal_letter_check(comm, &letter);
    if (status != PEAL_OK)
        return status;
    peal_mail_post(&comm->engine.mail, &letter);
    status = peal_comm_end(comm, peal_calls_wait(&comm->engine, &letter.status));
    if (status != PEAL_OK)
        return status;
    return tell(comm, &letter, bytes, sender);
}

enum peal_status peal_iprobe(struct peal_comm *comm, uint32_t from, uint32_t tag, uint64_t *bytes,
                             uint32_t *sender)
{
    struct peal_letter letter = {.probes = true, .peer = from, .tag = tag};
    enum peal_status status = peal_letter_check(comm, &letter);
    if (status != PEAL_OK)
        return status;
    if (!peal_mail_probe(&comm->engine.mail, &letter)) {
        peal_calls_progress(&comm->engine);
        return PEAL_PENDING;
    }
    return tell(comm, &letter, bytes, sender);
}
