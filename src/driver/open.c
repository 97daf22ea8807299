/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes hosts: the platform, the memory that workers see, the workers. */
#include "driver/hosts/hosts.h"
#include "driver/state/state.h"

#include "comm/comm.h"

#include "run/run.h"
#include "sim/sim.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define DEFAULT_MEMORY (UINT64_C(1) << 30)

static _Thread_local bool in_task;
static _Thread_local char open_error[1024];
static _Atomic uint32_t host_numbers;

enum peal_status peal_host_fail(struct peal_host *host, enum peal_status status, const char *format,
                                ...)
{
    va_list args;
    struct peal_text text = {0};
    va_start(args, format);
    peal_text_vprintf(&text, format, args); /* an argument may be the old text */
    va_end(args);
    peal_text_release(&host->error);
    host->error = text;
    return status;
}

void peal_host_in_task(bool inside)
{
    in_task = inside;
}

enum peal_status peal_host_enter(struct peal_host *host)
{
    if (!host)
        return PEAL_INVALID;
    if (in_task) {
        snprintf(open_error, sizeof open_error,
                 "a function that runs as a task called its host: it could wait for itself");
        return PEAL_INVALID;
    }
    return PEAL_OK;
}

const char *peal_host_error(const struct peal_host *host)
{
    if (host && !in_task)
        return peal_text_get(&host->error);
    return open_error;
}

uint32_t peal_host_workers(const struct peal_host *host)
{
    if (host)
        return host->workers;
    return 0;
}

const char *peal_host_platform(const struct peal_host *host)
{
    if (host)
        return host->platform;
    return "";
}

int64_t peal_host_pid(const struct peal_host *host, uint32_t worker)
{
    bool has = host && worker < host->workers && !host->threads && !host->simulated;
    if (has)
        return host->processes[worker].pid;
    return 0;
}

/* ---- platform ---- */

static enum peal_status open_machine(struct peal_host *host, const char *name)
{
    struct peal_diags diags;
    struct peal_text why = {0};
    peal_diags_init(&diags);
    enum peal_status status = peal_machine_open(name, &diags, &host->machine);
    if (status == PEAL_OK)
        status = peal_machine_kernels_check(host->machine, &diags);
    if (status != PEAL_OK) {
        peal_diags_quote(&diags, &why);
        peal_host_fail(host, status, "%s", peal_text_get(&why));
    } else if (!host->workers) {
        host->workers = peal_machine_ranks(host->machine);
        if (host->workers > PEAL_MOST_RANKS)
            status = peal_host_fail(host, PEAL_UNSUPPORTED, "%u workers, at most %d", host->workers,
                                    PEAL_MOST_RANKS);
    } else if (host->workers > host->machine->pes) {
        status = peal_host_fail(host, PEAL_UNSUPPORTED, "%u workers on a machine of %u PEs",
                                host->workers, host->machine->pes);
    }
    peal_text_release(&why);
    peal_diags_release(&diags);
    host->simulated = true;
    return status;
}

static enum peal_status choose_platform(struct peal_host *host, const char *asked)
{
    const char *environment = getenv("PEAL_PLATFORM"), *platform = asked ? asked : "native";
    if (environment && environment[0])
        platform = environment;
    if (strcmp(platform, "native:processes") == 0)
        platform = "native";
    host->platform = strdup(platform);
    if (!host->platform)
        return PEAL_NO_MEMORY;
    if (strncmp(platform, "sim:", 4) == 0)
        return open_machine(host, platform + 4);
    if (strncmp(host->platform, "hosts:", 6) == 0)
        host->hosts = host->platform + 6;
    if (!host->workers)
        return peal_host_fail(host, PEAL_INVALID, "a host has 1 to %d workers", PEAL_MOST_RANKS);
    host->threads = strcmp(platform, "native:threads") == 0;
    if (!host->threads && !host->hosts && strcmp(platform, "native") != 0)
        return peal_host_fail(
            host, PEAL_INVALID,
            "a platform is 'native', 'native:threads', 'hosts:A:N,B:M' or 'sim:MACHINE' (a file, "
            "or a built-in's name), not '%s'",
            platform);
    if (host->workers > PEAL_HOST_MAX_WORKERS)
        return peal_host_fail(host, PEAL_UNSUPPORTED, "%u workers, at most %d natively",
                              host->workers, PEAL_HOST_MAX_WORKERS);
    return PEAL_OK;
}

/* ---- memory ---- */

/* Memory at addresses that workers on other hosts can probably map too, since systems do not give
 * them out by themselves. */
static void *map_far_up(uint64_t bytes)
{
    for (uint64_t i = 0; i < 16; i++) {
        void *wanted = (void *)(uintptr_t)((UINT64_C(32) + 2 * i) << 40), *at;
        at = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == wanted)
            return at;
        if (at != MAP_FAILED)
            munmap(at, bytes);
    }
    return NULL;
}

static void *map(const struct peal_host *host, uint64_t bytes)
{
    void *at = NULL;
    if (host->hosts)
        at = map_far_up(bytes);
    if (at)
        return at;
    at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1,
              0);
    if (at == MAP_FAILED)
        return NULL;
    return at;
}

/* The next `bytes` of a block, beginning at a page. */
static void *carve(char *base, uint64_t *used, uint64_t bytes)
{
    void *at = NULL;
    if (base)
        at = base + *used;
    *used += peal_size_align(bytes, 4096);
    return at;
}

uint64_t peal_host_lay_out(char *base, uint32_t workers, struct peal_host_shared *shared)
{
    uint64_t used = 0, queues = (uint64_t)workers * PEAL_HOST_QUEUES;
    carve(base, &used, sizeof *shared);
    shared->queues = carve(base, &used, queues * sizeof *shared->queues);
    shared->rings = carve(base, &used, queues * PEAL_MOST_QUEUED * sizeof *shared->rings);
    shared->states = carve(base, &used, PEAL_HOST_STATES * sizeof *shared->states);
    shared->blocks = carve(base, &used, PEAL_HOST_BLOCK_BYTES);
    shared->of_worker = carve(base, &used, workers * sizeof *shared->of_worker);
    shared->reports = carve(base, &used, PEAL_HOST_REPORTS * sizeof *shared->reports);
    shared->works = carve(base, &used, PEAL_HOST_MAX_WORKS * sizeof *shared->works);
    shared->domains = carve(base, &used, PEAL_HOST_MAX_DOMAINS * sizeof *shared->domains);
    char *bases = carve(base, &used, (uint64_t)PEAL_HOST_MAX_DOMAINS * workers * sizeof(char *));
    shared->texts = carve(base, &used, PEAL_HOST_TEXT_BYTES);
    if (!base)
        return used;
    for (uint32_t i = 0; i < PEAL_HOST_MAX_DOMAINS; i++)
        shared->domains[i].bases = (char **)bases + (size_t)i * workers;
    return used;
}

static enum peal_status make_memory(struct peal_host *host)
{
    struct peal_host_shared sizes;
    uint64_t queues = (uint64_t)host->workers * PEAL_HOST_QUEUES, all;
    host->shared_bytes = peal_host_lay_out(NULL, host->workers, &sizes);
    host->shared = map(host, host->shared_bytes);
    host->areas = calloc(host->workers, sizeof *host->areas);
    host->processes = calloc(host->workers, sizeof *host->processes);
    host->positions = calloc(queues, sizeof *host->positions);
    host->block_ends = calloc(PEAL_MOST_QUEUED, sizeof *host->block_ends);
    host->held = calloc(PEAL_MOST_QUEUED, sizeof *host->held);
    host->ids = calloc(queues, sizeof *host->ids);
    host->ids_cap = calloc(queues, sizeof *host->ids_cap);
    if (!host->shared || !host->areas || !host->processes || !host->positions ||
        !host->block_ends || !host->held || !host->ids || !host->ids_cap)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a host");
    peal_host_lay_out((char *)host->shared, host->workers, host->shared);
    host->memory = peal_size_align(host->memory, 4096);
    if (!peal_size_mul(host->memory, host->workers, &all))
        return peal_host_fail(host, PEAL_INVALID, "more memory than any machine has");
    host->areas_base = map(host, all);
    if (!host->areas_base)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no addresses for %llu bytes per worker",
                              (unsigned long long)host->memory);
    for (uint32_t w = 0; w < host->workers; w++) {
        if (!peal_area_init(&host->areas[w], host->areas_base + w * host->memory, host->memory))
            return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for a host");
    }
    return PEAL_OK;
}

/* Checks function i; those before it are right. */
static enum peal_status check_function(struct peal_host *host, size_t i)
{
    struct peal_function *function = &host->functions[i];
    struct peal_host_work work = {0};
    if (!function->name || !function->run)
        return peal_host_fail(host, PEAL_INVALID, "function %zu has no name or no address", i);
    for (size_t j = 0; j < i; j++) {
        if (strcmp(host->functions[j].name, function->name) == 0)
            return peal_host_fail(host, PEAL_INVALID, "function '%s' is given twice",
                                  function->name);
    }
    if (!function->parameters)
        function->parameters = "";
    if (!peal_host_signature_read(function->parameters, &work))
        return peal_host_fail(
            host, PEAL_INVALID,
            "parameters of '%s' are a list of in, out, inout, int, ints, not '%s'", function->name,
            function->parameters);
    return PEAL_OK;
}

static enum peal_status copy_functions(struct peal_host *host, const struct peal_host_open *options)
{
    host->functions = calloc(options->nfunctions + 1, sizeof *host->functions);
    if (!host->functions)
        return peal_host_fail(host, PEAL_NO_MEMORY, "no memory for functions");
    void *made;
    const struct peal_function *given =
        peal_growth_view(options->functions, options->nfunctions, PEAL_FUNCTION_FIRST_BYTES,
                         sizeof(struct peal_function), &made);
    if (options->nfunctions && !given)
        return peal_host_fail(host, PEAL_UNSUPPORTED, PEAL_HOST_TOO_NEW, "a function");
    for (size_t i = 0; i < options->nfunctions; i++)
        host->functions[i] = given[i];
    free(made);
    for (size_t i = 0; i < options->nfunctions; i++) {
        enum peal_status status = check_function(host, i);
        if (status != PEAL_OK)
            return status;
        host->nfunctions++;
    }
    struct peal_function *matmul = &host->functions[host->nfunctions++];
    *matmul = peal_matmul_function;
    if (host->machine) {
        matmul->cost = peal_matmul_cost;
        matmul->context = host->machine;
    }
    return PEAL_OK;
}

static enum peal_status set_up(struct peal_host *host, const struct peal_host_open *options)
{
    uint64_t noise = 0;
    uint32_t everyone[PEAL_MOST_RANKS];
    enum peal_status status = choose_platform(host, options->platform);
    if (status == PEAL_OK)
        status = make_memory(host);
    if (status == PEAL_OK)
        status = copy_functions(host, options);
    if (status != PEAL_OK)
        return status;
    if (getrandom(&noise, sizeof noise, 0) != sizeof noise)
        return peal_host_fail(host, PEAL_SYSTEM, "the system has no random numbers");
    struct peal_host_shared *shared = host->shared;
    shared->workers = host->workers;
    shared->threads = host->threads;
    shared->timeout_ms = options->timeout_ms;
    snprintf(shared->job, sizeof shared->job, "host-%d-%016llx", (int)getpid(),
             (unsigned long long)noise);
    if (!host->simulated)
        status = peal_native_start(host);
    for (uint32_t w = 0; w < host->workers; w++)
        everyone[w] = w;
    struct peal_domain_spec spec = {
        .name = "everyone", .workers = everyone, .nworkers = host->workers};
    if (status == PEAL_OK)
        status = peal_host_domain_make(host, &spec, &host->everyone);
    return status;
}

/* In a program that a driver has started on another host: returns only on failure. */
static enum peal_status work_away(struct peal_host *host, const struct peal_host_open *options)
{
    enum peal_status status = copy_functions(host, options);
    if (status == PEAL_OK)
        status = peal_away_work(host);
    return status;
}

static enum peal_status open_known(const struct peal_host_open *options, struct peal_host **out)
{
    if (!options || !out || options->workers > PEAL_MOST_RANKS) {
        snprintf(open_error, sizeof open_error, "a host has 1 to %d workers", PEAL_MOST_RANKS);
        return options && options->workers > PEAL_MOST_RANKS ? PEAL_UNSUPPORTED : PEAL_INVALID;
    }
    struct peal_host *host = calloc(1, sizeof *host);
    if (!host) {
        snprintf(open_error, sizeof open_error, "no memory for a host");
        return PEAL_NO_MEMORY;
    }
    const char *verify = getenv("PEAL_VERIFY");
    host->number = (atomic_fetch_add(&host_numbers, 1) & 0x7fff) + 1;
    host->workers = options->workers;
    if (options->memory)
        host->memory = options->memory;
    else
        host->memory = DEFAULT_MEMORY;
    host->record = options->record != 0;
    host->verify = verify && strcmp(verify, "1") == 0;
    host->next_id = host->oldest = 1;
    host->origin_ns = peal_now_ns();
    pthread_mutex_init(&host->mutex, NULL);
    enum peal_status status;
    if (peal_away_is_worker())
        status = work_away(host, options);
    else
        status = set_up(host, options);
    if (status != PEAL_OK) {
        snprintf(open_error, sizeof open_error, "%s", peal_text_get(&host->error));
        host->stopping = true; /* workers that were started have nothing to do */
        peal_host_close(host);
        return status;
    }
    host->holding = options->hold != 0;
    *out = host;
    return PEAL_OK;
}

enum peal_status peal_host_open(const struct peal_host_open *options, struct peal_host **out)
{
    void *made;
    const struct peal_host_open *known =
        peal_growth_view(options, 1, PEAL_HOST_OPEN_FIRST_BYTES, sizeof *known, &made);
    if (options && !known) {
        snprintf(open_error, sizeof open_error, PEAL_HOST_TOO_NEW, "struct peal_host_open");
        return PEAL_UNSUPPORTED;
    }
    enum peal_status status = open_known(known, out);
    free(made);
    return status;
}

/* ---- closing ---- */

static void stop_workers(struct peal_host *host)
{
    for (uint32_t w = 0; w < host->workers; w++) {
        if (!host->processes[w].started)
            continue;
        for (uint32_t q = 0; q < PEAL_HOST_QUEUES; q++) {
            struct peal_host_internal task = {.kind = PEAL_HOST_STOP,
                                              .queue = q,
                                              .slot = PEAL_HOST_ALONE,
                                              .workers = &w,
                                              .members = 1};
            peal_host_submit_internal(host, &task, NULL);
        }
    }
    while (host->oldest < host->next_id)
        peal_host_wait_oldest(host);
}

static void release_domains(struct peal_host *host)
{
    for (size_t i = 0; i < host->domains.rows.len; i++) {
        struct peal_host_handle *row = &host->domains.rows.at[i];
        uint64_t id = (uint64_t)host->number << 48 | (uint64_t)row->generation << 24 | (i + 1);
        if (row->object)
            peal_domain_release(host, (struct peal_domain){id});
    }
    if (!host->everyone)
        return;
    uint64_t id = peal_handle_add(host, &host->domains, host->everyone);
    if (id)
        peal_domain_release(host, (struct peal_domain){id});
    host->everyone = NULL;
}

static void free_tables(struct peal_host *host)
{
    for (size_t i = 0; i < host->tensors.rows.len; i++) {
        if (host->tensors.rows.at[i].object)
            peal_host_tensor_destroy(host, host->tensors.rows.at[i].object);
    }
    peal_host_domain_collect(host);
    for (size_t i = 0; i < host->released.len; i++)
        peal_host_domain_destroy(host->released.at[i]);
    peal_vec_release(&host->released);
    peal_vec_release(&host->free_slots);
    peal_vec_release(&host->tensors.rows);
    peal_vec_release(&host->domains.rows);
    peal_host_works_release(host);
    for (size_t i = 0; i < host->failures.len; i++)
        free(host->failures.at[i].text);
    peal_vec_release(&host->failures);
    free(host->first_text);
    peal_vec_release(&host->frees);
    peal_vec_release(&host->scratch);
    peal_history_release(host);
}

static void free_memory(struct peal_host *host)
{
    uint32_t nareas = 0;
    if (host->areas)
        nareas = host->workers;
    for (uint32_t w = 0; w < nareas; w++)
        peal_vec_release(&host->areas[w].holes);
    if (host->shared)
        munmap(host->shared, host->shared_bytes);
    if (host->areas_base)
        munmap(host->areas_base, host->memory * host->workers);
    peal_machine_free(host->machine);
    free(host->areas);
    free(host->processes);
    free(host->positions);
    free(host->block_ends);
    free(host->held);
    free(host->functions);
    free(host->platform);
    peal_text_release(&host->error);
    pthread_mutex_destroy(&host->mutex);
    free(host);
}

void peal_host_close(struct peal_host *host)
{
    if (!host || (!host->stopping && peal_host_enter(host) != PEAL_OK))
        return;
    bool complete = host->shared && host->areas_base && host->processes;
    if (complete) {
        peal_host_publish(host);
        release_domains(host);
        if (host->simulated)
            peal_simulated_flush(host);
        else
            stop_workers(host);
        while (host->oldest < host->next_id)
            peal_host_wait_oldest(host);
        if (!host->simulated)
            peal_native_stop(host);
    }
    free_tables(host);
    free_memory(host);
}
