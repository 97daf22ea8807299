/* SPDX-License-Identifier: Apache-2.0 */
/* The meeting through PMIx: mpirun, prterun, srun. libpmix is loaded when it is needed. */
#include "run/net/meet/services.h"

#ifdef PEAL_HAVE_PMIX

#include <dlfcn.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARY "libpmix.so.2"

#define FUNCTIONS(X)                                                                               \
    X(PMIx_Init)                                                                                   \
    X(PMIx_Finalize)                                                                               \
    X(PMIx_Put)                                                                                    \
    X(PMIx_Commit)                                                                                 \
    X(PMIx_Fence)                                                                                  \
    X(PMIx_Get)                                                                                    \
    X(PMIx_Error_string)

struct pmix {
    struct peal_meet meet;
    pmix_proc_t self;
#define X(name) __typeof__(&name) name;
    FUNCTIONS(X)
#undef X
};

/* Numbers the exchanges, whose names must never repeat in a process. It is the same on all ranks, as all of
 * them meet equally often. */
static _Atomic uint64_t rounds;

static bool load(struct pmix *pmix, struct peal_text *why)
{
    void *handle = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
        peal_text_printf(why, "ranks were started through PMIx, which needs %s: %s", LIBRARY,
                         dlerror());
        return false;
    }
#define X(name)                                                                                    \
    *(void **)&pmix->name = dlsym(handle, #name);                                                  \
    if (!pmix->name) {                                                                             \
        peal_text_printf(why, "%s has no %s", LIBRARY, #name);                                     \
        return false;                                                                              \
    }
    FUNCTIONS(X)
#undef X
    return true;
}

static enum peal_status fail(const struct pmix *pmix, const char *function, pmix_status_t status,
                             struct peal_text *why)
{
    peal_text_printf(why, "%s failed: %s", function, pmix->PMIx_Error_string(status));
    return status == PMIX_ERR_TIMEOUT ? PEAL_TIMEOUT : PEAL_SYSTEM;
}

/* Values belong to the caller. The library frees them by a macro of its header, which needs linking; they are small
 * and few, so only their bytes are freed. */
static void free_value(pmix_value_t *value)
{
    if (value->type == PMIX_BYTE_OBJECT)
        free(value->data.bo.bytes);
    free(value);
}

static enum peal_status get_row(struct pmix *pmix, uint32_t rank, const char *name, size_t bytes,
                                void *out, struct peal_text *why)
{
    pmix_proc_t from = {0};
    pmix_value_t *value = NULL;
    memcpy(from.nspace, pmix->self.nspace, sizeof from.nspace);
    from.rank = rank;
    pmix_status_t status = pmix->PMIx_Get(&from, name, NULL, 0, &value);
    if (status != PMIX_SUCCESS || !value)
        return fail(pmix, "PMIx_Get", status, why);
    bool fits = value->type == PMIX_BYTE_OBJECT && value->data.bo.size == bytes;
    if (fits)
        memcpy(out, value->data.bo.bytes, bytes);
    else
        peal_text_printf(why, "rank %u exchanges something else: it makes another call", rank);
    free_value(value);
    return fits ? PEAL_OK : PEAL_MISMATCH;
}

static enum peal_status fence(struct pmix *pmix, struct peal_text *why)
{
    pmix_proc_t everyone = {0};
    pmix_info_t infos[2] = {0};
    memcpy(everyone.nspace, pmix->self.nspace, sizeof everyone.nspace);
    everyone.rank = PMIX_RANK_WILDCARD;
    snprintf(infos[0].key, sizeof infos[0].key, "%s", PMIX_COLLECT_DATA);
    infos[0].value.type = PMIX_BOOL;
    infos[0].value.data.flag = true;
    snprintf(infos[1].key, sizeof infos[1].key, "%s", PMIX_TIMEOUT);
    infos[1].value.type = PMIX_INT;
    infos[1].value.data.integer = (int)((pmix->meet.timeout_ms + 999) / 1000);
    pmix_status_t status = pmix->PMIx_Fence(&everyone, 1, infos, 2);
    return status == PMIX_SUCCESS ? PEAL_OK : fail(pmix, "PMIx_Fence", status, why);
}

static enum peal_status pmix_gather(struct peal_meet *meet, const void *own, size_t bytes,
                                    void *all, struct peal_text *why)
{
    struct pmix *pmix = (struct pmix *)(void *)meet;
    char name[64];
    /* Relaxed: only a number that is used once is needed. */
    snprintf(name, sizeof name, "peal.%llu",
             (unsigned long long)atomic_fetch_add_explicit(&rounds, 1, memory_order_relaxed));
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    value.data.bo.bytes = (char *)(uintptr_t)own;
    value.data.bo.size = bytes;
    pmix_status_t status = pmix->PMIx_Put(PMIX_GLOBAL, name, &value);
    if (status != PMIX_SUCCESS)
        return fail(pmix, "PMIx_Put", status, why);
    status = pmix->PMIx_Commit();
    if (status != PMIX_SUCCESS)
        return fail(pmix, "PMIx_Commit", status, why);
    enum peal_status result = fence(pmix, why);
    for (uint32_t r = 0; r < meet->size && result == PEAL_OK; r++)
        result = get_row(pmix, r, name, bytes, (uint8_t *)all + r * bytes, why);
    return result;
}

static void pmix_close(struct peal_meet *meet)
{
    struct pmix *pmix = (struct pmix *)(void *)meet;
    (void)pmix->PMIx_Finalize(NULL, 0); /* counted: an MPI library's own use goes on */
    free(pmix);
}

static const struct peal_meet_ops ops = {"PMIx", pmix_gather, pmix_close};

static bool get_size(struct pmix *pmix, uint32_t *out, struct peal_text *why)
{
    pmix_proc_t everyone = {0};
    pmix_value_t *value = NULL;
    memcpy(everyone.nspace, pmix->self.nspace, sizeof everyone.nspace);
    everyone.rank = PMIX_RANK_WILDCARD;
    pmix_status_t status = pmix->PMIx_Get(&everyone, PMIX_JOB_SIZE, NULL, 0, &value);
    if (status != PMIX_SUCCESS || !value || value->type != PMIX_UINT32) {
        (void)fail(pmix, "PMIx_Get of the number of ranks", status, why);
        return false;
    }
    *out = value->data.uint32;
    free_value(value);
    return true;
}

enum peal_status peal_meet_open_pmix(uint32_t timeout_ms, struct peal_text *why,
                                     struct peal_meet **out)
{
    struct pmix *pmix = calloc(1, sizeof *pmix);
    uint32_t size = 0;
    if (!pmix)
        return PEAL_NO_MEMORY;
    if (!load(pmix, why)) {
        free(pmix);
        return PEAL_UNSUPPORTED;
    }
    pmix_status_t status = pmix->PMIx_Init(&pmix->self, NULL, 0);
    if (status != PMIX_SUCCESS) {
        enum peal_status result = fail(pmix, "PMIx_Init", status, why);
        free(pmix);
        return result;
    }
    if (!get_size(pmix, &size, why)) {
        pmix_close(&pmix->meet);
        return PEAL_SYSTEM;
    }
    pmix->meet = (struct peal_meet){
        .ops = &ops, .rank = pmix->self.rank, .size = size, .timeout_ms = timeout_ms};
    snprintf(pmix->meet.job, sizeof pmix->meet.job, "%.63s", pmix->self.nspace);
    *out = &pmix->meet;
    return PEAL_OK;
}

#else

enum peal_status peal_meet_open_pmix(uint32_t timeout_ms, struct peal_text *why,
                                     struct peal_meet **out)
{
    (void)timeout_ms, (void)out;
    peal_text_puts(why, "ranks were started through PMIx, which this library was built without");
    return PEAL_UNSUPPORTED;
}

#endif
