/* SPDX-License-Identifier: Apache-2.0 */
/* What a host refuses, and with which message; what dies with a worker and what does not; what is
 * held, checked and recorded.
 *
 *     host_test PLATFORM
 */
#include "driver/state/state.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *platform;
static struct peal_host *host;
static struct peal_work add, ring, sleeper, faulty, caller, nothing;

static const char add_text[] = "kernel add(in x: T[n], inout y: T[n]) {\n    y = x + y\n}\n";
/* Racy: a rank may write its slot while another still reads it. */
static const char racy_text[] =
    "kernel racy(in x: T[n], out y: T[n], op: reduce) implements "
    "allreduce {\n    window slot: T[n]\n    signal ready[nranks]\n"
    "    slot = x\n    for p in peers { notify ready[rank]@p += 1 }\n"
    "    for p in peers { wait ready[p] >= 1 }\n    let acc = slot@0\n"
    "    for q in 1 .. nranks { acc = op(acc, slot@q) }\n    y = acc\n}\n";

#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition,                    \
                    peal_host_error(host));                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define refused(call, status, words)                                                               \
    check((call) == (status) && strstr(peal_host_error(host), words) != NULL)

static enum peal_status run_nothing(const struct peal_function_call *call, void *context)
{
    (void)call;
    (void)context;
    return PEAL_OK;
}

static enum peal_status run_sleep(const struct peal_function_call *call, void *context)
{
    (void)context;
    long ms = (long)call->args[1].value;
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
    return PEAL_OK;
}

static enum peal_status run_faulty(const struct peal_function_call *call, void *context)
{
    (void)context;
    if (call->args[1].value == 0)
        return PEAL_OK;
    snprintf(call->error, call->error_cap, "it was asked to");
    return PEAL_UNSUPPORTED;
}

/* A task that waits for tasks could wait for itself. */
static enum peal_status run_caller(const struct peal_function_call *call, void *context)
{
    (void)context;
    snprintf(call->error, call->error_cap, "wait: %d", (int)peal_host_wait_all(host));
    return peal_host_wait_all(host) == PEAL_INVALID ? PEAL_MISMATCH : PEAL_OK;
}

static void open_host(uint32_t workers)
{
    struct peal_function functions[] = {
        {.name = "nothing", .run = run_nothing, .parameters = "", .cost_ps = 1000},
        {.name = "sleep", .run = run_sleep, .parameters = "inout, int", .cost_ps = 1000000},
        {.name = "faulty", .run = run_faulty, .parameters = "inout, int", .cost_ps = 1000},
        {.name = "caller", .run = run_caller, .parameters = "", .cost_ps = 1000}};
    struct peal_host_open options = {
        .workers = workers, .platform = platform, .functions = functions, .nfunctions = 4};
    options.record = 1;
    options.memory = 32 << 20;
    check(peal_host_open(&options, &host) == PEAL_OK);
    check(peal_work_kernel(host, add_text, NULL, &add) == PEAL_OK);
    check(peal_work_kernel(host, NULL, "allreduce_ring", &ring) == PEAL_OK);
    struct peal_work *const works[] = {&nothing, &sleeper, &faulty, &caller};
    for (int i = 0; i < 4; i++)
        check(peal_work_function(host, functions[i].name, works[i]) == PEAL_OK);
}

static struct peal_tensor new_tensor(enum peal_placement place, uint32_t worker, uint64_t count)
{
    struct peal_tensor made;
    struct peal_tensor_spec spec = {
        .name = "t", .dtype = PEAL_F32, .ndims = 1, .place = place, .worker = worker};
    spec.shape[0] = count;
    check(peal_tensor_new(host, &spec, &made) == PEAL_OK);
    return made;
}

static enum peal_status submit_two(struct peal_work work, uint32_t worker, struct peal_tensor x,
                                   struct peal_tensor y)
{
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y)};
    struct peal_task_spec spec = {.work = work, .worker = worker, .args = args, .nargs = 2};
    return peal_host_submit(host, &spec, NULL);
}

static enum peal_status submit_int(struct peal_work work, uint32_t worker, struct peal_tensor y,
                                   int64_t value, struct peal_task *out)
{
    struct peal_task_arg args[] = {peal_arg_tensor(y), peal_arg_int(value)};
    struct peal_task_spec spec = {.work = work, .worker = worker, .args = args, .nargs = 2};
    return peal_host_submit(host, &spec, out);
}

static enum peal_status submit_ring(struct peal_domain domain, struct peal_tensor x,
                                    struct peal_tensor y)
{
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y),
                                   peal_arg_reduce(PEAL_SUM)};
    struct peal_task_spec spec = {
        .work = ring, .domain = domain, .everyone = !domain.id, .args = args, .nargs = 3};
    return peal_host_submit(host, &spec, NULL);
}

/* ---- bad input ---- */

static bool cannot_open(const struct peal_host_open *options, enum peal_status status,
                        const char *words)
{
    struct peal_host *none = NULL;
    return peal_host_open(options, &none) == status && strstr(peal_host_error(NULL), words);
}

/* Without a number of workers a modelled machine has as many as it is made for. */
static void test_workers_of_machine(void)
{
    struct peal_host *machine = NULL;
    struct peal_host_open options = {.platform = "sim:mesh4x4"};
    check(peal_host_open(&options, &machine) == PEAL_OK && peal_host_workers(machine) == 16);
    peal_host_close(machine);
    options.platform = "sim:large4096";
    check(cannot_open(&options, PEAL_UNSUPPORTED, "4096 workers, at most 256"));
}

static void test_openings(void)
{
    struct peal_host_open options = {.workers = 0, .platform = "native"};
    check(cannot_open(&options, PEAL_INVALID, "1 to 256"));
    options.platform = platform;
    test_workers_of_machine();
    options.workers = 257;
    check(cannot_open(&options, PEAL_UNSUPPORTED, "1 to 256"));
    options.workers = 2;
    options.platform = "hosts:a:1,b:1";
    check(setenv("PEAL_COMMAND", "/no/peal", 1) == 0);
    check(cannot_open(&options, PEAL_SYSTEM, "PEAL_COMMAND"));
    struct peal_function twice[] = {{.name = "f", .run = run_nothing, .parameters = "in"},
                                    {.name = "f", .run = run_nothing, .parameters = "in"}};
    options.functions = twice;
    options.nfunctions = 2;
    check(cannot_open(&options, PEAL_INVALID, "twice"));
    twice[1] = (struct peal_function){.name = "g", .run = run_nothing, .parameters = "in, uot"};
    check(cannot_open(&options, PEAL_INVALID, "uot"));
    options.platform = "quantum";
    check(cannot_open(&options, PEAL_INVALID, "quantum"));
    options.platform = "sim:no/such/machine.yaml";
    check(cannot_open(&options, PEAL_INVALID, "machine.yaml"));
    options.platform = "sim:cube";
    options.workers = 5;
    check(cannot_open(&options, PEAL_UNSUPPORTED, "4 PEs"));
    peal_host_close(NULL);
}

static void test_refusals(void)
{
    struct peal_tensor x = new_tensor(PEAL_ON_WORKER, 0, 64), y = new_tensor(PEAL_ON_WORKER, 0, 64);
    struct peal_tensor away = new_tensor(PEAL_ON_WORKER, 1, 64);
    struct peal_tensor small = new_tensor(PEAL_ON_WORKER, 0, 8), made, i64;
    struct peal_work work;
    struct peal_domain domain;
    float data[64];
    struct peal_tensor_spec ints = {.dtype = PEAL_I64, .ndims = 1, .shape = {64}};
    check(peal_tensor_new(host, &ints, &i64) == PEAL_OK);
    refused(submit_two(add, 0, x, small), PEAL_INVALID, "needs 64 elements");
    refused(submit_two(add, 1, x, away), PEAL_INVALID, "no part on worker 1");
    refused(submit_two(add, 9, x, y), PEAL_INVALID, "no worker 9");
    refused(submit_two(add, 0, x, x), PEAL_INVALID, "overlap");
    refused(submit_two(add, 0, x, i64), PEAL_INVALID, "are of f32 and of i64");
    refused(submit_two(ring, 0, x, y), PEAL_INVALID, "takes 3 arguments");
    refused(submit_int(add, 0, x, 3, NULL), PEAL_INVALID, "is a tensor, not an int");
    refused(submit_two(add, 0, x, (struct peal_tensor){y.id ^ 1ull << 50}), PEAL_INVALID,
            "another host");
    refused(peal_work_kernel(host, "kernel k(in x: T[n]) { y = x }", NULL, &work), PEAL_INVALID,
            "1:");
    refused(peal_work_kernel(host, NULL, "no_such_kernel", &work), PEAL_INVALID, "no_such_kernel");
    refused(peal_work_function(host, "no_such", &work), PEAL_INVALID, "no_such");
    refused(peal_tensor_read(host, x, data, 10), PEAL_INVALID, "256 bytes");
    ints.shape[0] = 1u << 30;
    refused(peal_tensor_new(host, &ints, &made), PEAL_NO_MEMORY, "no such room");
    ints.ndims = 9;
    refused(peal_tensor_new(host, &ints, &made), PEAL_INVALID, "dimensions");
    uint32_t members[] = {0, 1, 2, 3, 4, 5, 6, 7};
    struct peal_domain_spec spec = {.workers = members, .nworkers = 8};
    refused(peal_domain_new(host, &spec, &domain), PEAL_INVALID, "the host has 4");
    members[1] = 0;
    spec.nworkers = 2;
    refused(peal_domain_new(host, &spec, &domain), PEAL_INVALID, "twice");
    struct peal_domain_buffer huge = {.name = "g", .dtype = PEAL_F64, .count = UINT64_MAX / 16};
    members[1] = 1;
    spec.buffers = &huge;
    spec.nbuffers = 1;
    refused(peal_domain_new(host, &spec, &domain), PEAL_INVALID, "larger than any memory");
    check(peal_tensor_free(host, y) == PEAL_OK);
    refused(peal_tensor_free(host, y), PEAL_CLOSED, "freed");
    refused(submit_two(add, 0, x, y), PEAL_CLOSED, "freed");
    check(peal_work_kernel(host, NULL, "all_to_all_pull", &work) == PEAL_OK);
    refused(submit_two(work, 0, x, x), PEAL_INVALID, "overlap"); /* no contract with such a plan */
    struct peal_task_arg sum[] = {peal_arg_tensor(x), peal_arg_tensor(x),
                                  peal_arg_reduce(PEAL_AND)};
    struct peal_task_spec and = {.work = ring, .args = sum, .nargs = 3};
    refused(peal_host_submit(host, &and, NULL), PEAL_INVALID, "no plan");
    refused(peal_host_wait(host, (struct peal_task){0}), PEAL_INVALID, "no such task");
    check(peal_host_wait_all(host) == PEAL_OK);
}

/* Functions see the shape of each shard; a kernel has one length, which must not leave out the ends
 * of longer shards. */
static void test_uneven_shards(void)
{
    struct peal_tensor_spec spec = {
        .dtype = PEAL_F32, .ndims = 2, .shape = {3, 6}, .place = PEAL_SHARDED, .shard_dim = 1};
    struct peal_tensor w, c, x, row = new_tensor(PEAL_SHARDED, 0, 6);
    struct peal_work matmul, one;
    float left[6] = {1, 2, 3, 4, 5, 6}, right[18], product[12];
    check(peal_tensor_new(host, &spec, &w) == PEAL_OK);
    spec.shape[0] = 2;
    check(peal_tensor_new(host, &spec, &c) == PEAL_OK);
    spec.shape[1] = 3;
    spec.place = PEAL_REPLICATED;
    check(peal_tensor_new(host, &spec, &x) == PEAL_OK);
    for (int i = 0; i < 18; i++)
        right[i] = (float)(i * i);
    check(peal_tensor_write(host, x, left, sizeof left) == PEAL_OK);
    check(peal_tensor_write(host, w, right, sizeof right) == PEAL_OK);
    check(peal_work_function(host, "matmul", &matmul) == PEAL_OK);
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(w), peal_arg_tensor(c),
                                   peal_arg_int(0)};
    struct peal_task_spec task = {.work = matmul, .everyone = 1, .args = args, .nargs = 4};
    check(peal_host_submit(host, &task, NULL) == PEAL_OK);
    check(peal_tensor_read(host, c, product, sizeof product) == PEAL_OK);
    for (int i = 0; i < 12; i++) {
        const float *l = &left[i / 6 * 3], *r = &right[i % 6];
        check(product[i] == l[0] * r[0] + l[1] * r[6] + l[2] * r[12]);
    }
    args[1] = peal_arg_tensor(x);
    refused(peal_host_submit(host, &task, NULL), PEAL_INVALID,
            "not f32[2,3], f32[2,3] and f32[2,1] on");
    check(peal_work_kernel(host, "kernel k(inout x: T[n]) { x = 1.0 }", NULL, &one) == PEAL_OK);
    args[0] = peal_arg_tensor(row);
    task = (struct peal_task_spec){.work = one, .everyone = 1, .args = args, .nargs = 1};
    refused(peal_host_submit(host, &task, NULL), PEAL_INVALID, "1 on worker 0 and 2 on worker 1");
}

static void test_domains(void)
{
    uint32_t members[] = {2, 0};
    struct peal_domain_buffer buffers[] = {{.name = "g", .dtype = PEAL_F32, .count = 16},
                                           {.name = "h", .dtype = PEAL_I64, .count = 5}};
    struct peal_domain_spec spec = {
        .name = "pair", .workers = members, .nworkers = 2, .buffers = buffers, .nbuffers = 2};
    struct peal_domain domain;
    struct peal_tensor g, none;
    struct peal_work window;
    float data[16], zero[16] = {0};
    check(peal_domain_new(host, &spec, &domain) == PEAL_OK);
    check(peal_domain_tensor(host, domain, "g", &g) == PEAL_OK);
    refused(peal_domain_tensor(host, domain, "nothing", &none), PEAL_INVALID, "nothing");
    check(peal_tensor_read_part(host, g, 1, data, sizeof data) == PEAL_OK);
    check(memcmp((char *)data, (char *)zero, sizeof data) == 0);
    for (uint32_t r = 0; r < 2; r++) {
        for (int i = 0; i < 16; i++)
            data[i] = (float)(i + 10 * (int)r);
        check(peal_tensor_write_part(host, g, r, data, sizeof data) == PEAL_OK);
    }
    check(peal_work_kernel(host, NULL, "allreduce_window", &window) == PEAL_OK);
    struct peal_task_arg args[] = {peal_arg_tensor(g), peal_arg_reduce(PEAL_SUM)};
    struct peal_task_spec task = {.work = window, .domain = domain, .args = args, .nargs = 2};
    check(peal_host_submit(host, &task, NULL) == PEAL_OK);
    struct peal_tensor plain = new_tensor(PEAL_REPLICATED, 0, 16);
    args[0] = peal_arg_tensor(plain);
    refused(peal_host_submit(host, &task, NULL), PEAL_INVALID, "is a window");
    check(peal_tensor_read_part(host, g, 1, data, sizeof data) == PEAL_OK);
    check(data[3] == 16.0f);
    check(peal_domain_release(host, domain) == PEAL_OK);
    refused(peal_domain_release(host, domain), PEAL_CLOSED, "released");
    refused(peal_tensor_read_part(host, g, 1, data, sizeof data), PEAL_CLOSED, "freed or released");
    args[0] = peal_arg_tensor(g);
    refused(peal_host_submit(host, &task, NULL), PEAL_CLOSED, "released");
}

/* ---- failures ---- */

static void test_failing_function(void)
{
    struct peal_tensor x = new_tensor(PEAL_ON_WORKER, 0, 8), y = new_tensor(PEAL_ON_WORKER, 0, 8);
    struct peal_tensor z = new_tensor(PEAL_ON_WORKER, 0, 8);
    struct peal_task bad, fine;
    float data[8] = {0};
    check(submit_int(faulty, 0, x, 1, &bad) == PEAL_OK);
    check(submit_two(add, 0, x, y) == PEAL_OK);           /* reads what failed */
    check(submit_int(faulty, 0, z, 0, &fine) == PEAL_OK); /* does not depend on it */
    refused(peal_host_wait(host, bad), PEAL_UNSUPPORTED, "it was asked to");
    check(strstr(peal_host_error(host), "faulty") && strstr(peal_host_error(host), "worker 0"));
    check(peal_host_wait(host, bad) == PEAL_UNSUPPORTED);
    check(peal_host_wait(host, fine) == PEAL_OK);
    check(peal_tensor_read(host, z, data, sizeof data) == PEAL_OK);
    refused(peal_tensor_read(host, y, data, sizeof data), PEAL_UNSUPPORTED, "failed");
    check(peal_tensor_write(host, x, data, sizeof data) == PEAL_OK); /* overwritten: clean again */
    check(peal_tensor_read(host, x, data, sizeof data) == PEAL_OK);
    check(peal_host_wait_all(host) == PEAL_UNSUPPORTED);
    check(peal_host_wait_all(host) == PEAL_OK);
    struct peal_task_spec spec = {.work = caller, .worker = 1};
    struct peal_task task;
    check(peal_host_submit(host, &spec, &task) == PEAL_OK);
    check(peal_host_wait(host, task) == PEAL_MISMATCH); /* the call came back with PEAL_INVALID */
    check(peal_host_wait_all(host) == PEAL_MISMATCH);
}

/* However many tasks fail because of one, its text is kept, and theirs name it. */
static void test_many_dependents(void)
{
    static const int counts[] = {1, 300, 2000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct peal_tensor x = new_tensor(PEAL_ON_WORKER, 0, 8);
        struct peal_task first, later = {0};
        float data[8] = {0};
        char name[64];
        check(submit_int(faulty, 0, x, 1, &first) == PEAL_OK);
        for (int k = 0; k < counts[i]; k++)
            check(submit_int(faulty, 0, x, 0, &later) == PEAL_OK);
        check(peal_host_wait_all(host) == PEAL_UNSUPPORTED);
        check(strstr(peal_host_error(host), "it was asked to"));
        snprintf(name, sizeof name, "task %llu, ",
                 (unsigned long long)(first.id & ((UINT64_C(1) << 48) - 1)));
        check(strstr(peal_host_error(host), name) == peal_host_error(host));
        refused(peal_host_wait(host, first), PEAL_UNSUPPORTED, "it was asked to");
        refused(peal_host_wait(host, later), PEAL_UNSUPPORTED, "it was asked to");
        check(strstr(peal_host_error(host), name) && strstr(peal_host_error(host), "was not run"));
        refused(peal_tensor_read(host, x, data, sizeof data), PEAL_UNSUPPORTED, "it was asked to");
        check(peal_host_wait_all(host) == PEAL_OK);
        check(peal_tensor_free(host, x) == PEAL_OK);
    }
}

/* Worker 3 dies: its tensors and domains are lost, those of workers 0 and 1 are not. */
static void test_death(void)
{
    uint32_t left[] = {0, 1}, right[] = {2, 3};
    struct peal_domain_spec spec = {.workers = left, .nworkers = 2};
    struct peal_domain a, b;
    check(peal_domain_new(host, &spec, &a) == PEAL_OK);
    spec.workers = right;
    check(peal_domain_new(host, &spec, &b) == PEAL_OK);
    struct peal_tensor x = new_tensor(PEAL_REPLICATED, 0, 32),
                       y = new_tensor(PEAL_REPLICATED, 0, 32);
    struct peal_tensor own = new_tensor(PEAL_ON_WORKER, 2, 32),
                       lonely = new_tensor(PEAL_ON_WORKER, 3, 32);
    float data[32];
    for (int i = 0; i < 32; i++)
        data[i] = (float)i;
    check(peal_tensor_write(host, x, data, sizeof data) == PEAL_OK);
    check(submit_ring(a, x, y) == PEAL_OK);
    check(submit_ring(b, x, y) == PEAL_OK);
    check(peal_host_wait_all(host) == PEAL_OK);
    struct peal_task slow;
    check(submit_int(sleeper, 3, lonely, 3600000, &slow) == PEAL_OK);
    for (int i = 0; i < 50; i++) {
        check(submit_ring(a, x, y) == PEAL_OK);
        check(submit_ring(b, x, y) == PEAL_OK);
        check(submit_two(add, 2, own, own) == PEAL_INVALID);
    }
    kill((pid_t)peal_host_pid(host, 3), SIGKILL);
    refused(peal_host_wait(host, slow), PEAL_PEER_DEAD, "worker 3 is dead");
    check(peal_host_wait_all(host) == PEAL_PEER_DEAD);
    check(peal_tensor_read_part(host, y, 1, data, sizeof data) == PEAL_OK && data[5] == 10.0f);
    refused(peal_tensor_read_part(host, y, 3, data, sizeof data), PEAL_PEER_DEAD, "worker 3");
    refused(submit_ring(b, x, y), PEAL_PEER_DEAD, "worker 3 is dead");
    refused(submit_int(sleeper, 3, lonely, 1, NULL), PEAL_PEER_DEAD, "worker 3 is dead");
    check(submit_ring(a, x, y) == PEAL_OK);
    check(submit_int(sleeper, 2, own, 1, NULL) == PEAL_OK);
    check(peal_host_wait_all(host) == PEAL_OK);
    check(peal_domain_release(host, b) == PEAL_OK);
    check(peal_domain_release(host, a) == PEAL_OK);
}

/* ---- queues, graphs, records ---- */

static void test_full_queue(void)
{
    struct peal_task_spec spec = {.work = nothing, .worker = 0};
    struct peal_tensor x = new_tensor(PEAL_ON_WORKER, 0, 8);
    enum peal_status status = PEAL_OK;
    check(peal_host_hold(host) == PEAL_OK);
    for (uint32_t i = 0; i <= PEAL_MOST_QUEUED; i++) {
        status = peal_host_try_submit(host, &spec, NULL);
        if (status != PEAL_OK)
            break;
    }
    check(status == PEAL_PENDING);
    check(peal_host_go(host) == PEAL_OK);
    for (uint32_t i = 0; i < 2000; i++) {
        spec.worker = i % 4;
        check(peal_host_submit(host, &spec, NULL) == PEAL_OK);
    }
    check(peal_host_wait_all(host) == PEAL_OK);
    struct peal_host_stats stats;
    check(peal_host_stats(host, &stats, sizeof stats) == PEAL_OK && stats.ended == stats.submitted);
    check(stats.submitted >= PEAL_MOST_QUEUED + 2000);
    check(peal_tensor_free(host, x) == PEAL_OK);
}

static void test_graph(void)
{
    struct peal_tensor x = new_tensor(PEAL_REPLICATED, 0, 32),
                       y = new_tensor(PEAL_REPLICATED, 0, 32);
    struct peal_work racy;
    refused(peal_host_check(host), PEAL_INVALID, "nothing is held");
    check(peal_host_hold(host) == PEAL_OK);
    for (int i = 0; i < 3; i++) {
        check(submit_ring((struct peal_domain){0}, x, y) == PEAL_OK);
        for (uint32_t w = 0; w < 4; w++)
            check(submit_two(add, w, y, x) == PEAL_OK);
    }
    check(peal_host_check(host) == PEAL_OK);
    check(peal_work_kernel(host, racy_text, NULL, &racy) == PEAL_OK);
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y),
                                   peal_arg_reduce(PEAL_SUM)};
    struct peal_task_spec spec = {.work = racy, .everyone = 1, .args = args, .nargs = 3};
    check(peal_host_submit(host, &spec, NULL) == PEAL_OK);
    refused(peal_host_check(host), PEAL_INVALID, "'racy' is refuted");
    refused(peal_host_check(host), PEAL_INVALID, "can happen at once"); /* the message, each time */
    host->verify = true;
    refused(peal_host_submit(host, &spec, NULL), PEAL_INVALID, "'racy' is refuted");
    host->verify = false;
    check(peal_host_go(host) == PEAL_OK);
    check(peal_host_wait_all(host) == PEAL_OK);
}

/* Two kernels on a domain's buffer, the first of which a rank may leave while another reads its
 * scratch. */
static const char open_text[] = "kernel leaves(g: window T[n], out y: T[n]) {\n"
                                "    window slot: T[2 * n]\n"
                                "    signal done[nranks]\n"
                                "    slot[(launch mod 2) * n +: n] = g\n"
                                "    for p in peers { notify done[rank]@p += 1 }\n"
                                "    for p in peers { wait done[p] >= 1 }\n"
                                "    y = slot@((rank + 1) % nranks)[(launch mod 2) * n +: n]\n"
                                "}\n"
                                "kernel clears(g: window T[n]) {\n"
                                "    g = 0\n"
                                "}\n";

/* Faults that a correct host never makes, planted in what is held: the check finds each. */
static void test_planted(void)
{
    struct peal_tensor x = new_tensor(PEAL_REPLICATED, 0, 32),
                       y = new_tensor(PEAL_REPLICATED, 0, 32), g;
    uint32_t members[] = {0, 1};
    struct peal_domain_buffer buffer = {.name = "g", .dtype = PEAL_F32, .count = 32};
    struct peal_domain_spec spec = {
        .workers = members, .nworkers = 2, .buffers = &buffer, .nbuffers = 1};
    struct peal_domain pair;
    check(peal_domain_new(host, &spec, &pair) == PEAL_OK);
    check(peal_domain_tensor(host, pair, "g", &g) == PEAL_OK);
    check(submit_ring((struct peal_domain){0}, x, y) == PEAL_OK);
    check(peal_host_wait_all(host) == PEAL_OK);
    check(peal_host_hold(host) == PEAL_OK);
    check(submit_ring((struct peal_domain){0}, x, y) == PEAL_OK);
    struct peal_host_block *reduce = host->held[(host->next_id - 1) % PEAL_MOST_QUEUED];
    check(submit_two(add, 0, y, x) == PEAL_OK); /* reads what the ring writes, and the reverse */
    struct peal_host_block *sum = host->held[(host->next_id - 1) % PEAL_MOST_QUEUED];
    check(peal_host_check(host) == PEAL_OK);
    uint32_t after = sum->parts[0].after;
    sum->parts[0].after = after - 1;
    refused(peal_host_check(host), PEAL_INVALID, "touch the same bytes");
    sum->parts[0].after = after;
    after = reduce->parts[0].after;
    reduce->parts[0].after = sum->parts[0].position + 1;
    refused(peal_host_check(host), PEAL_INVALID, "waits for a task that waits for it");
    reduce->parts[0].after = after;
    check(peal_host_check(host) == PEAL_OK);
    struct peal_work leaves, clears;
    check(peal_work_kernel(host, open_text, "leaves", &leaves) == PEAL_OK);
    check(peal_work_kernel(host, open_text, "clears", &clears) == PEAL_OK);
    struct peal_task_arg args[] = {peal_arg_tensor(g), peal_arg_tensor(y)};
    struct peal_task_spec first = {.work = leaves, .domain = pair, .args = args, .nargs = 2};
    struct peal_task_spec second = {.work = clears, .domain = pair, .args = args, .nargs = 1};
    check(peal_host_submit(host, &first, NULL) == PEAL_OK);
    check(peal_host_check(host) == PEAL_OK);
    check(peal_host_submit(host, &second, NULL) == PEAL_OK);
    refused(peal_host_check(host), PEAL_INVALID, "not closed");
    check(peal_host_go(host) == PEAL_OK && peal_host_wait_all(host) == PEAL_OK);
    check(peal_domain_release(host, pair) == PEAL_OK);
}

/* Structures of programs that were compiled against other headers. */
static void test_growth(void)
{
    struct {
        struct peal_tensor_spec known;
        uint64_t later;
    } newer = {.known = {.struct_size = sizeof newer, .dtype = PEAL_F32, .ndims = 1, .shape = {8}}};
    struct peal_tensor x;
    struct peal_host_stats stats = {.failed = 1}, older = {.failed = 77, .time_ps = 5};
    check(peal_tensor_new(host, &newer.known, &x) == PEAL_OK); /* new fields, not used */
    check(peal_tensor_free(host, x) == PEAL_OK);
    newer.later = 1;
    refused(peal_tensor_new(host, &newer.known, &x), PEAL_UNSUPPORTED, "does not know");
    check(peal_host_stats(host, &stats, sizeof stats) == PEAL_OK);
    check(peal_host_stats(host, &older, 2 * sizeof(uint64_t)) == PEAL_OK);
    check(older.submitted == stats.submitted && older.failed == 77 && older.time_ps == 5);
}

static void test_files(void)
{
    char folder[] = "/tmp/peal-host-XXXXXX", path[64];
    check(mkdtemp(folder) != NULL);
    const struct {
        const char *name, *begins;
        enum peal_status (*write)(struct peal_host *host, const char *path);
    } files[] = {{"trace.json", "{", peal_host_write_trace},
                 {"graph.svg", "<svg", peal_host_write_graph},
                 {"path.txt", "critical path: ", peal_host_write_path},
                 {"page.html", "<!", peal_host_write_page}};
    for (size_t i = 0; i < 4; i++) {
        char begin[16] = "";
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        check(files[i].write(host, path) == PEAL_OK);
        FILE *file = fopen(path, "r");
        check(file && fread(begin, 1, 15, file) > 0);
        fclose(file);
        check(strncmp(begin, files[i].begins, strlen(files[i].begins)) == 0 || i == 0);
        unlink(path);
    }
    rmdir(folder);
    refused(peal_host_write_trace(host, "/no/such/folder/x"), PEAL_SYSTEM, "/no/such/folder/x");
}

/* Simulated time of an allreduce, of a function of 1 us, and of both, which share nothing. */
static uint64_t time_of(bool sums, bool calls)
{
    struct peal_host_stats stats;
    open_host(4);
    struct peal_tensor x = new_tensor(PEAL_REPLICATED, 0, 32), z = new_tensor(PEAL_ON_WORKER, 1, 8);
    if (calls)
        check(submit_int(sleeper, 1, z, 0, NULL) == PEAL_OK);
    uint32_t members[] = {2, 3};
    struct peal_domain_spec spec = {.workers = members, .nworkers = 2};
    struct peal_domain pair;
    check(peal_domain_new(host, &spec, &pair) == PEAL_OK);
    if (sums)
        check(submit_ring(pair, x, x) == PEAL_OK);
    check(peal_host_wait_all(host) == PEAL_OK);
    check(peal_host_stats(host, &stats, sizeof stats) == PEAL_OK);
    peal_host_close(host);
    host = NULL;
    return stats.time_ps;
}

static void test_overlap(void)
{
    uint64_t sum = time_of(true, false), call = time_of(false, true), both = time_of(true, true);
    check(sum > 0 && call > 0);
    check(both == (sum > call ? sum : call));
}

/* Contributions are folded from worker 0 on, whichever worker runs them. */
static void test_reductions(void)
{
    enum peal_reduction op = PEAL_SUM, again = PEAL_SUM;
    struct peal_work mesh;
    check(peal_host_reduction_declare(host, "reduce f(a, b) = a + c", NULL, &op) == PEAL_INVALID &&
          strstr(peal_host_error(host), "c"));
    check(peal_host_reduction_declare(host, "reduce first(a, b) = a", "last", &op) == PEAL_INVALID);
    check(peal_host_reduction_declare(host, "reduce first(a, b) = a", NULL, &op) == PEAL_OK);
    check(peal_host_reduction_declare(host, "reduce smooth(a, b) = a / 2 + b", NULL, &op) ==
          PEAL_OK);
    check(peal_host_reduction_declare(host, "reduce smooth(a, b) = a / 2 + b", "smooth", &again) ==
              PEAL_OK &&
          again == op);
    check(peal_work_kernel(host, NULL, "allreduce_mesh", &mesh) == PEAL_OK);
    struct peal_tensor x = new_tensor(PEAL_REPLICATED, 0, 64),
                       y = new_tensor(PEAL_REPLICATED, 0, 64);
    float values[64], got[64];
    for (int i = 0; i < 64; i++)
        values[i] = (float)i;
    check(peal_tensor_write(host, x, values, sizeof values) == PEAL_OK);
    struct peal_task_arg args[] = {peal_arg_tensor(x), peal_arg_tensor(y), peal_arg_reduce(op)};
    struct peal_task_spec spec = {.work = mesh, .everyone = 1, .args = args, .nargs = 3};
    check(peal_host_submit(host, &spec, NULL) == PEAL_OK);
    check(peal_tensor_read(host, y, got, sizeof got) == PEAL_OK);
    for (int i = 0; i < 64; i++)
        check(got[i] == 1.875F * values[i]); /* ((x / 2 + x) / 2 + x) / 2 + x */
    args[2].reduce = (enum peal_reduction)(op + 1);
    check(peal_host_submit(host, &spec, NULL) == PEAL_INVALID);
}

int main(int argc, char **argv)
{
    platform = argc > 1 ? argv[1] : "native";
    bool processes = strcmp(platform, "native") == 0 || strchr(platform, ',');
    if (!strchr(platform, ',')) /* a list of hosts, where the first opening becomes workers */
        test_openings();
    open_host(4);
    test_refusals();
    test_uneven_shards();
    test_domains();
    test_reductions();
    test_graph();
    test_planted();
    test_growth();
    test_files();
    test_failing_function();
    test_many_dependents();
    if (processes)
        test_death();
    peal_host_close(host);
    host = NULL;
    open_host(4);
    test_full_queue();
    peal_host_close(host);
    if (strncmp(platform, "sim:", 4) == 0)
        test_overlap();
    printf("host on %s: passed\n", platform);
    return 0;
}
