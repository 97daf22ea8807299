/* SPDX-License-Identifier: Apache-2.0 */
/* Calls with wrong arguments are refused at once, on the rank that makes them, without a failure of
 * the communicator. */
#include "chaos.h"

void call_refused(struct rank *me, uint32_t group)
{
    struct peal_comm *comm = me->comms[group];
    uint32_t size = me->groups[group].size;
    float x[64] = {0}, y[64] = {0};
    uint64_t huge[MAX_RANKS] = {UINT64_MAX / 2, 1, UINT64_MAX};
    struct peal_request *request = NULL;
    struct peal_user_kernel *kernel = NULL;
    enum peal_status status;
    uint32_t which = below(&me->own, 12);
    rank_begins(me, "wrong arguments, case %u", which);
    switch (which) {
    case 0:
        status = peal_allreduce(comm, x, x + 1, 8, PEAL_F32, PEAL_SUM);
        break;
    case 1:
        status = peal_iallreduce(comm, NULL, y, 8, PEAL_F32, PEAL_SUM, &request);
        break;
    case 2:
        status = peal_broadcast(comm, x, 4, PEAL_F32, size);
        break;
    case 3:
        status = peal_allreduce(comm, x, y, 4, PEAL_F32, PEAL_XOR);
        break;
    case 4:
        status = peal_reduce_scatter(comm, x, y, UINT64_MAX / 8, PEAL_F64, PEAL_SUM);
        break;
    case 5:
        status = peal_allgather_v(comm, x, y, huge, NULL, PEAL_F32);
        break;
    case 6:
        status = peal_iall_to_all(comm, x, x, 1, PEAL_F32, &request);
        break;
    case 7:
        status = peal_send(comm, x, 4, size, 0);
        break;
    case 8:
        status = peal_irecv(comm, NULL, 4, 0, 0, &request);
        break;
    case 9:
        status = peal_user_kernel_load(comm, "kernel bad(in x: T[n]) { y = x }", NULL, &kernel);
        break;
    case 10:
        status = peal_comm_set_algo(comm, "allreduce", "none");
        break;
    default:
        status = peal_symmetric_free(comm, x);
    }
    bool failed = (me->fault != NO_FAULT || me->may_fail) && status == PEAL_CLOSED;
    if (status != PEAL_INVALID && !failed)
        rank_complain(me, "%s, not refused", peal_status_text(status));
    if (request || kernel)
        rank_complain(me, "refused, and something came out");
}
