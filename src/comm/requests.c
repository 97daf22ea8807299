/* SPDX-License-Identifier: Apache-2.0 */
/* Several requests at once: all of them, or any. They may be of different communicators. */
#include "comm/core/communicator.h"

/* How long to wait for one before the others get their turn; doubled from round to round. */
enum { FIRST_SLICE_US = 20, LAST_SLICE_US = 2000 };

static bool is_one_communicator(struct peal_request *const *requests, size_t count)
{
    const struct peal_comm *comm = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!requests[i])
            continue;
        if (comm && requests[i]->comm != comm)
            return false;
        comm = requests[i]->comm;
    }
    return true;
}

/* The first request that has ended, or `count`. */
static size_t find_ended(struct peal_request *const *requests, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (requests[i] && peal_request_look(requests[i]) != PEAL_PENDING)
            return i;
    }
    return count;
}

/* Moves whatever can move in every communicator that has one of these requests. */
static void move_all(struct peal_request *const *requests, size_t count)
{
    const struct peal_comm *last = NULL;
    for (size_t i = 0; i < count; i++) {
        struct peal_request *request = requests[i];
        if (!request || request->comm == last || peal_request_look(request) != PEAL_PENDING)
            continue;
        last = request->comm;
        (void)peal_calls_wait_until(&request->comm->engine, peal_request_status(request),
                                    &request->pause, 0);
    }
}

/* Frees a request that has ended, and returns its status. */
static enum peal_status take(struct peal_request **request)
{
    enum peal_status status = peal_request_test(*request);
    *request = NULL;
    return status;
}

/* Frees the requests that have ended; true if any are left. */
static bool take_ended(struct peal_request **requests, size_t count, enum peal_status *statuses,
                       enum peal_status *first)
{
    bool left = false;
    for (size_t i = 0; i < count; i++) {
        if (!requests[i])
            continue;
        if (peal_request_look(requests[i]) == PEAL_PENDING) {
            left = true;
            continue;
        }
        enum peal_status status = take(&requests[i]);
        if (statuses)
            statuses[i] = status;
        if (*first == PEAL_OK)
            *first = status;
    }
    return left;
}

/* Waits a slice for each pending request. If all are of one communicator, waits for the first only,
 * without a limit, because that moves all of them. */
static void wait_a_while(struct peal_request *const *requests, size_t count, bool one,
                         uint64_t *slice_us)
{
    for (size_t i = 0; i < count; i++) {
        struct peal_request *request = requests[i];
        if (!request || peal_request_look(request) != PEAL_PENDING)
            continue;
        uint64_t until = one ? UINT64_MAX : peal_now_ns() + *slice_us * 1000;
        (void)peal_calls_wait_until(&request->comm->engine, peal_request_status(request),
                                    &request->pause, until);
        if (one)
            return;
    }
    *slice_us = *slice_us < LAST_SLICE_US ? 2 * *slice_us : LAST_SLICE_US;
}

enum peal_status peal_request_wait_all(struct peal_request **requests, size_t count,
                                       enum peal_status *statuses)
{
    enum peal_status first = PEAL_OK;
    uint64_t slice_us = FIRST_SLICE_US;
    if (count > 0 && !requests)
        return PEAL_INVALID;
    bool one = is_one_communicator(requests, count);
    if (statuses) {
        for (size_t i = 0; i < count; i++)
            statuses[i] = PEAL_OK;
    }
    while (take_ended(requests, count, statuses, &first)) {
        move_all(requests, count);
        wait_a_while(requests, count, one, &slice_us);
    }
    return first;
}

enum peal_status peal_request_wait_any(struct peal_request **requests, size_t count, size_t *index)
{
    uint64_t slice_us = FIRST_SLICE_US;
    size_t any = 0, ended;
    if ((count > 0 && !requests) || !index)
        return PEAL_INVALID;
    while (any < count && !requests[any])
        any++;
    *index = count;
    if (any == count)
        return PEAL_OK;
    while ((ended = find_ended(requests, count)) == count) {
        move_all(requests, count);
        if (find_ended(requests, count) == count)
            wait_a_while(requests, count, false, &slice_us);
    }
    *index = ended;
    return take(&requests[ended]);
}

enum peal_status peal_request_test_all(struct peal_request **requests, size_t count,
                                       enum peal_status *statuses)
{
    enum peal_status first = PEAL_OK;
    if (count > 0 && !requests)
        return PEAL_INVALID;
    move_all(requests, count);
    for (size_t i = 0; i < count; i++) {
        if (requests[i] && peal_request_look(requests[i]) == PEAL_PENDING)
            return PEAL_PENDING;
    }
    if (statuses) {
        for (size_t i = 0; i < count; i++)
            statuses[i] = PEAL_OK;
    }
    (void)take_ended(requests, count, statuses, &first);
    return first;
}
