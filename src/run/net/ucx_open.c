/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the UCX member: the library, the TCP net beside it, and the worker on the device that was named. */
#include "run/net/ucx.h"

#ifdef PEAL_HAVE_UCX

#include <dlfcn.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define LIBRARY "libucp.so.0"

static bool load(struct peal_ucx *ucx, struct peal_text *why)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        peal_text_printf(why, "PEAL_NET=ucx needs %s: %s", LIBRARY, dlerror());
        return false;
    }
#define X(name)                                                                                    \
    *(void **)&ucx->name = dlsym(handle, #name);                                                   \
    if (!ucx->name) {                                                                              \
        peal_text_printf(why, "%s has no %s", LIBRARY, #name);                                     \
        return false;                                                                              \
    }
    PEAL_UCX_FUNCTIONS(X)
#undef X
    return true;
}

/* One lane, so that messages stay in order; the device that was named, and TCP if it is an interface. */
static bool configure(struct peal_ucx *ucx, ucp_config_t *config, const char *where)
{
    bool ok = ucx->ucp_config_modify(config, "MAX_EAGER_LANES", "1") == UCS_OK;
    if (where[0])
        ok = ok && ucx->ucp_config_modify(config, "NET_DEVICES", where) == UCS_OK;
    if (where[0] && if_nametoindex(where) != 0 && !getenv("UCX_TLS"))
        ok = ok && ucx->ucp_config_modify(config, "TLS", "tcp") == UCS_OK;
    return ok;
}

static bool make_worker(struct peal_ucx *ucx, const char *where)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP};
    const ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                        .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    const ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                      UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS,
        .id = PEAL_UCX_MESSAGE,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = peal_ucx_message,
        .arg = ucx};
    ucp_config_t *config;
    int fd = -1;
    if (ucx->ucp_config_read(NULL, NULL, &config) != UCS_OK)
        return false;
    bool ok = configure(ucx, config, where) &&
              ucx->ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &ucx->context) ==
                  UCS_OK;
    ucx->ucp_config_release(config);
    ok = ok && ucx->ucp_worker_create(ucx->context, &worker, &ucx->worker) == UCS_OK &&
         ucx->ucp_worker_set_am_recv_handler(ucx->worker, &handler) == UCS_OK &&
         ucx->ucp_worker_get_efd(ucx->worker, &fd) == UCS_OK;
    struct epoll_event event = {.events = EPOLLIN};
    return ok && epoll_ctl(ucx->epoll, EPOLL_CTL_ADD, fd, &event) == 0 &&
           epoll_ctl(ucx->epoll, EPOLL_CTL_ADD, peal_net_arm(ucx->tcp), &event) == 0;
}

static bool allocate(struct peal_ucx *ucx)
{
    bool ok = true;
    ucx->workers = calloc(ucx->net.size, PEAL_UCX_WORKER);
    ucx->peers = calloc(ucx->net.size, sizeof *ucx->peers);
    ucx->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (uint32_t i = 0; i < PEAL_UCX_SLOTS; i++) {
        size_t bytes = i < PEAL_UCX_LARGE_SLOTS ? PEAL_NET_POST_MAX : PEAL_UCX_SLOT;
        ucx->slots[i].ucx = ucx;
        ucx->slots[i].captured = malloc(bytes);
        ok = ok && ucx->slots[i].captured;
    }
    if (!ucx->peers)
        return false;
    for (uint32_t r = 0; r < ucx->net.size; r++) {
        ucx->peers[r].in.net = &ucx->net;
        ucx->peers[r].in.rank = r;
        ucx->peers[r].in.segments = &ucx->segments;
    }
    return ok && ucx->workers && ucx->epoll >= 0;
}

/* Behind the TCP net's address: the length of the worker's, and that. */
static bool put_address(struct peal_ucx *ucx, uint8_t *out)
{
    ucp_address_t *address;
    size_t len = 0;
    if (ucx->ucp_worker_get_address(ucx->worker, &address, &len) != UCS_OK)
        return false;
    uint64_t stored = len;
    bool fits = len + 8 <= PEAL_UCX_WORKER;
    if (fits) {
        memcpy(out, &stored, 8);
        memcpy(out + 8, address, len);
    }
    ucx->ucp_worker_release_address(ucx->worker, address);
    return fits;
}

static enum peal_status refuse(struct peal_ucx *ucx, enum peal_status status)
{
    if (ucx->tcp)
        peal_net_abandon(ucx->tcp);
    peal_ucx_free(ucx);
    return status;
}

enum peal_status peal_net_open_ucx(const struct peal_net_config *config, const char *where,
                                   struct peal_text *why, struct peal_net **out,
                                   uint8_t address[static PEAL_NET_ADDRESS])
{
    struct peal_ucx *ucx = calloc(1, sizeof *ucx);
    if (!ucx)
        return PEAL_NO_MEMORY;
    ucx->epoll = -1;
    ucx->net = (struct peal_net){
        .ops = &peal_ucx_ops, .rank = config->rank, .size = config->size, .events = config->events};
    ucx->events = config->events;
    if (!load(ucx, why) || !allocate(ucx))
        return refuse(ucx, PEAL_UNSUPPORTED);
    if (!where[0] && !getenv("UCX_NET_DEVICES")) {
        peal_text_puts(why, "PEAL_NET=ucx needs a device, as in ucx:eth0 or ucx:mlx5_0:1");
        return refuse(ucx, PEAL_INVALID);
    }
    if (config->crypt) {
        peal_text_puts(why, "UCX does not encrypt: PEAL_NET_CRYPT is for tcp");
        return refuse(ucx, PEAL_UNSUPPORTED);
    }
    struct peal_net_config beside = *config;
    beside.events = (struct peal_net_events){
        .context = ucx, .control = peal_ucx_control, .lost = peal_ucx_lost};
    const char *interface = if_nametoindex(where) != 0 ? where : "";
    enum peal_status status = peal_net_open_tcp(&beside, interface, why, &ucx->tcp, address);
    if (status != PEAL_OK)
        return refuse(ucx, status);
    if (!make_worker(ucx, where) || !put_address(ucx, address + PEAL_NET_TCP_ADDRESS)) {
        peal_text_printf(why, "UCX cannot use '%s'", where);
        return refuse(ucx, PEAL_UNSUPPORTED);
    }
    *out = &ucx->net;
    return PEAL_OK;
}

enum peal_status peal_net_meet_ucx(struct peal_net *net, const uint8_t *addresses)
{
    struct peal_ucx *ucx = (struct peal_ucx *)(void *)net;
    for (uint32_t r = 0; r < net->size; r++)
        memcpy(ucx->workers + (size_t)r * PEAL_UCX_WORKER,
               addresses + (size_t)r * PEAL_NET_ADDRESS + PEAL_NET_TCP_ADDRESS, PEAL_UCX_WORKER);
    return peal_net_meet_tcp(ucx->tcp, addresses);
}

#else

enum peal_status peal_net_open_ucx(const struct peal_net_config *config, const char *where,
                                   struct peal_text *why, struct peal_net **out,
                                   uint8_t address[static PEAL_NET_ADDRESS])
{
    (void)config, (void)where, (void)out, (void)address;
    peal_text_puts(why, "this library was built without UCX");
    return PEAL_UNSUPPORTED;
}

enum peal_status peal_net_meet_ucx(struct peal_net *net, const uint8_t *addresses)
{
    (void)net, (void)addresses;
    return PEAL_UNSUPPORTED;
}

#endif
