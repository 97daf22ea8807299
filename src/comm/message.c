/* SPDX-License-Identifier: Apache-2.0 */
/* Point-to-point messages, and requests of all kinds.
 *
 * A request owns what is under way: a message's letter (run/call/mail.h) or a collective call with
 * its bounds. It is freed by the call that reports its end, which happens once. A blocking send or
 * receive is a request that is waited for at once, so that all messages take the same path.
 *
 * On a simulated machine the bytes travel through this host in an envelope that says when they
 * arrive on the machine; receiver's and sender's clocks are advanced when the envelope is opened.
 * Tags with the highest bit are the library's own. */
#include "comm/simulated/platform.h"

#include <stdlib.h>
#include <string.h>

/* Tags with this bit are the library's own. */
#define OWN_TAG UINT32_C(0x80000000)

/* ---- on a simulated machine ---- */

struct peal_envelope {
    uint64_t arrives;
    char data[];
};

/* Puts the letter into an envelope, and a stamp on it. */
static enum peal_status seal(struct peal_comm *comm, struct peal_request *request)
{
    struct peal_letter *letter = &request->letter;
    struct peal_stamp stamp = {0};
    if (letter->bytes > INT64_MAX)
        return peal_comm_fail(comm, PEAL_INVALID, "the message does not fit an address space");
    if (letter->sends) {
        enum peal_status status =
            peal_platform_send(comm->platform, comm, letter->peer, letter->bytes, &stamp);
        if (status != PEAL_OK)
            return status;
    }
    request->envelope = malloc(sizeof *request->envelope + letter->bytes);
    if (!request->envelope)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a message");
    request->envelope->arrives = stamp.arrives;
    request->sent = stamp.sent;
    if (letter->sends && letter->bytes > 0)
        memcpy(request->envelope->data, letter->data, letter->bytes);
    request->room = letter->data;
    letter->data = (char *)request->envelope;
    letter->bytes += sizeof *request->envelope;
    return PEAL_OK;
}

/* Advances the clock when a message has been sent or has arrived. */
static void unseal(struct peal_request *request)
{
    struct peal_letter *letter = &request->letter;
    letter->bytes -= sizeof *request->envelope;
    if (letter->sends) {
        peal_platform_advance(request->comm->platform, request->sent);
    } else if (letter->status == PEAL_OK || letter->status == PEAL_INVALID) {
        letter->length -= sizeof *request->envelope;
        uint64_t bytes = peal_size_min(letter->length, letter->bytes);
        if (bytes > 0)
            memcpy(request->room, request->envelope->data, bytes);
        peal_platform_advance(request->comm->platform, request->envelope->arrives);
    }
    free(request->envelope);
    request->envelope = NULL;
}

/* ---- requests ---- */

struct peal_request *peal_request_new(struct peal_comm *comm, struct peal_request **out,
                                      size_t words, enum peal_status *status)
{
    if (!out) {
        *status = peal_comm_fail(comm, PEAL_INVALID, "no place for the request");
        return NULL;
    }
    size_t bounds = 2 * (size_t)comm->team->size + 2;
    struct peal_request *request =
        calloc(1, sizeof *request + bounds * sizeof *request->bounds + words * sizeof(uint64_t));
    if (request) {
        request->comm = comm;
        comm->requests++;
    } else
        *status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a request");
    return request;
}

/* Frees it; the last request of a closed communicator also frees the communicator. */
static void free_request(struct peal_request *request)
{
    struct peal_comm *comm = request->comm;
    if (request->is_message && request->letter.status == PEAL_OK && !request->letter.sends) {
        comm->received.messages++;
        comm->received.bytes += request->letter.length;
    }
    peal_arrival_free(request->arrival);
    free(request->envelope);
    free(request);
    if (peal_team_is_closed(comm->team))
        peal_comm_drop(comm);
    else
        comm->requests--;
}

enum peal_status peal_request_start(struct peal_request *request, enum peal_status status,
                                    struct peal_request **out)
{
    struct peal_comm *comm = request->comm;
    if (status != PEAL_OK) {
        free_request(request);
        return status;
    }
    peal_call_start(&comm->engine, &request->call);
    *out = request;
    return PEAL_OK;
}

/* On a simulated machine a call has ended when it has ended on this host and all ranks have started
 * it. */
static enum peal_status look_at_call(struct peal_request *request)
{
    enum peal_status status = request->call.status;
    struct peal_arrival *arrival = request->arrival;
    if (arrival && status == PEAL_OK) {
        if (*peal_arrival_status(arrival) == PEAL_PENDING)
            return PEAL_PENDING;
        request->arrival = NULL;
        request->call.status = status = peal_arrival_end(arrival, request->comm);
    }
    return peal_comm_end(request->comm, status);
}

/* PEAL_PENDING, or how it ended. */
enum peal_status peal_request_look(struct peal_request *request)
{
    const struct peal_letter *letter = &request->letter;
    if (request->is_rma)
        return peal_rma_end(request->comm, &request->rma);
    if (!request->is_message)
        return look_at_call(request);
    if (request->envelope && letter->status != PEAL_PENDING && request->comm->platform)
        unseal(request);
    if (letter->status == PEAL_INVALID)
        return peal_comm_fail(
            request->comm, PEAL_INVALID, "rank %u sent %llu bytes, there is room for %llu",
            letter->sender, (unsigned long long)letter->length, (unsigned long long)letter->bytes);
    return peal_comm_end(request->comm, letter->status);
}

const enum peal_status *peal_request_status(const struct peal_request *request)
{
    if (request->is_message)
        return &request->letter.status;
    if (request->is_rma)
        return &request->rma.status;
    bool met = !request->arrival || request->call.status != PEAL_OK;
    if (met)
        return &request->call.status;
    return peal_arrival_status(request->arrival);
}

enum peal_status peal_request_test(struct peal_request *request)
{
    if (!request)
        return PEAL_OK;
    struct peal_calls *engine = &request->comm->engine;
    enum peal_status status = peal_request_look(request);
    if (status == PEAL_PENDING) {
        (void)peal_calls_wait_until(engine, peal_request_status(request), &request->pause, 0);
        status = peal_request_look(request);
    }
    if (status != PEAL_PENDING)
        free_request(request);
    return status;
}

/* The end of a wait: returns length and sender, and frees the request. */
static enum peal_status finish(struct peal_request *request, uint64_t *got, uint32_t *sender)
{
    enum peal_status status = peal_request_look(request);
    if (request->is_message && !request->letter.sends) {
        if (got)
            *got = request->letter.length;
        if (sender)
            *sender = request->letter.sender;
    }
    free_request(request);
    return status;
}

enum peal_status peal_request_wait_recv(struct peal_request *request, uint64_t *got,
                                        uint32_t *sender)
{
    if (!request)
        return PEAL_OK;
    do
        (void)peal_calls_wait(&request->comm->engine, peal_request_status(request));
    while (peal_request_look(request) == PEAL_PENDING);
    return finish(request, got, sender);
}

enum peal_status peal_request_wait_for(struct peal_request *request, uint64_t microseconds,
                                       uint64_t *got, uint32_t *sender)
{
    if (!request)
        return PEAL_OK;
    struct peal_calls *engine = &request->comm->engine;
    uint64_t now = peal_now_ns(); /* a sum that overflows means: no limit */
    uint64_t until =
        microseconds < (UINT64_MAX - now) / 1000 ? now + microseconds * 1000 : UINT64_MAX;
    do {
        if (peal_calls_wait_until(engine, peal_request_status(request), &request->pause, until) ==
            PEAL_PENDING)
            return PEAL_PENDING;
    } while (peal_request_look(request) == PEAL_PENDING);
    return finish(request, got, sender);
}

enum peal_status peal_request_wait(struct peal_request *request)
{
    return peal_request_wait_recv(request, NULL, NULL);
}

/* ---- messages ---- */

enum peal_status peal_letter_check(struct peal_comm *comm, const struct peal_letter *letter)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    bool any = !letter->sends && letter->peer == PEAL_ANY_SOURCE;
    if (!any && letter->peer >= comm->team->size)
        return peal_comm_fail(comm, PEAL_INVALID, "rank %u of %u", letter->peer, comm->team->size);
    if (letter->tag & OWN_TAG)
        return peal_comm_fail(comm, PEAL_INVALID, "tag %u; the highest is %u", letter->tag,
                              ~OWN_TAG);
    return PEAL_OK;
}

uint64_t peal_letter_overhead(const struct peal_comm *comm)
{
    if (comm->platform)
        return sizeof(struct peal_envelope);
    return 0;
}

static enum peal_status post(struct peal_comm *comm, const struct peal_letter *letter,
                             struct peal_request **out)
{
    enum peal_status status = peal_letter_check(comm, letter);
    if (status != PEAL_OK)
        return status;
    if (!out || (letter->bytes > 0 && !letter->data))
        return peal_comm_fail(comm, PEAL_INVALID, "no buffer");
    struct peal_request *request = calloc(1, sizeof *request);
    if (!request)
        return peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for a request");
    request->comm = comm;
    comm->requests++;
    request->is_message = true;
    request->letter = *letter;
    if (comm->platform && (status = seal(comm, request)) != PEAL_OK) {
        free_request(request);
        return status;
    }
    if (letter->sends) {
        comm->sent.messages++;
        comm->sent.bytes += letter->bytes;
    }
    peal_under_way_use(&comm->engine);
    peal_mail_post(&comm->engine.mail, &request->letter);
    peal_team_depart(comm->team);
    *out = request;
    return PEAL_OK;
}

enum peal_status peal_isend(struct peal_comm *comm, const void *data, uint64_t bytes, uint32_t to,
                            uint32_t tag, struct peal_request **out)
{
    struct peal_letter letter = {
        .sends = true, .peer = to, .tag = tag, .data = (char *)(uintptr_t)data, .bytes = bytes};
    return post(comm, &letter, out);
}

enum peal_status peal_irecv(struct peal_comm *comm, void *data, uint64_t bytes, uint32_t from,
                            uint32_t tag, struct peal_request **out)
{
    struct peal_letter letter = {.peer = from, .tag = tag, .data = data, .bytes = bytes};
    return post(comm, &letter, out);
}

enum peal_status peal_send(struct peal_comm *comm, const void *data, uint64_t bytes, uint32_t to,
                           uint32_t tag)
{
    struct peal_request *request;
    enum peal_status status = peal_isend(comm, data, bytes, to, tag, &request);
    if (status != PEAL_OK)
        return status;
    return peal_request_wait(request);
}

enum peal_status peal_recv(struct peal_comm *comm, void *data, uint64_t bytes, uint32_t from,
                           uint32_t tag, uint64_t *got, uint32_t *sender)
{
    struct peal_request *request;
    enum peal_status status = peal_irecv(comm, data, bytes, from, tag, &request);
    if (status != PEAL_OK)
        return status;
    return peal_request_wait_recv(request, got, sender);
}
