/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of tasks against a sequential interpreter of the same tasks.
 *
 *     graph_test PLATFORM WORKERS TASKS SEED [GRAPHS [KILLS]]
 *
 * Tensors are of i32, so that results are either equal or wrong. The interpreter below knows what
 * each work means and nothing else of Peal. With KILLS, workers die at random: then every part of a
 * tensor is either right or reported as lost, and lost only if it depends on a dead worker.
 */
#include <peal/host.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_WORKERS = 16, MAX_DOMAINS = 6, MAX_TENSORS = 40, MAX_COUNT = 240 };

static const char text[] = "kernel twice(in x: T[n], out y: T[n]) {\n    y = x + x\n}\n"
                           "kernel add(in x: T[n], inout y: T[n]) {\n    y = x + y\n}\n"
                           "kernel shift(in x: T[n], out y: T[n]) {\n"
                           "    let right = (rank + 1) % nranks\n"
                           "    let left = (rank - 1) % nranks\n"
                           "    send x to right\n    y = recv from left\n}\n";

enum kind {
    TWICE,
    ADD,
    SHIFT,
    RING,
    MESH,
    CHUNKED,
    BROADCAST,
    GATHER,
    EXCHANGE,
    MIX,
    WINDOW,
    KINDS
};
static const char *const kernels[KINDS] = {[TWICE] = "twice",
                                           [ADD] = "add",
                                           [SHIFT] = "shift",
                                           [RING] = "allreduce_ring",
                                           [MESH] = "allreduce_mesh",
                                           [CHUNKED] = "allreduce_chunked",
                                           [BROADCAST] = "broadcast_flat",
                                           [GATHER] = "allgather_ring",
                                           [EXCHANGE] = "all_to_all_pull",
                                           [WINDOW] = "allreduce_window"};

struct model_domain {
    struct peal_domain handle;
    uint32_t size, workers[MAX_WORKERS];
    struct peal_tensor buffer;
    bool live;
};

/* A tensor with the same count of elements on each worker that has it. */
struct model_tensor {
    struct peal_tensor handle;
    bool live, is_buffer;
    uint32_t domain; /* of a buffer */
    uint32_t count;
    bool on[MAX_WORKERS];
    uint32_t nparts, part_worker[MAX_WORKERS];
    int32_t *value[MAX_WORKERS];
    bool lost[MAX_WORKERS]; /* depends on a worker that may have died */
};

static struct peal_host *host;
static uint32_t workers, ndomains, ntensors;
static bool killing, dead[MAX_WORKERS];
static struct model_domain domains[MAX_DOMAINS];
static struct model_tensor tensors[MAX_TENSORS];
static struct peal_work works[KINDS];
static uint64_t state;

static uint32_t roll(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 20) % below;
}

static void must(enum peal_status status, const char *action)
{
    if (status == PEAL_OK)
        return;
    fprintf(stderr, "%s: %s: %s\n", action, peal_status_text(status), peal_host_error(host));
    exit(1);
}

static enum peal_status mix(const struct peal_function_call *call, void *context)
{
    const int32_t *x = call->args[0].data;
    int32_t *y = call->args[1].data;
    (void)context;
    for (uint64_t i = 0; i < call->args[1].count; i++)
        y[i] = (int32_t)((uint32_t)y[i] * 3 + (uint32_t)x[i] + (uint32_t)call->args[2].value +
                         call->rank);
    return PEAL_OK;
}

/* ---- tensors and domains ---- */

static void fill(struct model_tensor *t)
{
    int32_t data[MAX_COUNT];
    for (uint32_t p = 0; p < t->nparts; p++) {
        uint32_t w = t->part_worker[p];
        if (killing && dead[w])
            continue;
        for (uint32_t i = 0; i < t->count; i++)
            data[i] = (int32_t)roll(1000);
        enum peal_status status =
            peal_tensor_write_part(host, t->handle, p, data, t->count * sizeof *data);
        if (killing && (status == PEAL_PEER_DEAD || status == PEAL_CLOSED)) {
            t->lost[w] = true;
            continue;
        }
        must(status, "write");
        memcpy(t->value[w], data, t->count * sizeof *data);
        t->lost[w] = false;
    }
}

static void new_tensor(struct model_tensor *t)
{
    uint32_t d = roll(ndomains), kind = roll(3);
    const struct model_domain *domain = &domains[d];
    memset(t, 0, sizeof *t);
    t->count = (1 + roll(MAX_COUNT / MAX_WORKERS)) * workers;
    struct peal_tensor_spec spec = {.dtype = PEAL_I32, .ndims = 1, .shape = {t->count}};
    if (kind == 0) {
        spec.worker = roll(workers);
        t->part_worker[t->nparts++] = spec.worker;
    } else {
        spec.place = kind == 1 ? PEAL_REPLICATED : PEAL_SHARDED;
        spec.domain = domain->handle;
        if (kind == 2)
            spec.shape[0] *= domain->size;
        for (uint32_t m = 0; m < domain->size; m++)
            t->part_worker[t->nparts++] = domain->workers[m];
    }
    must(peal_tensor_new(host, &spec, &t->handle), "tensor");
    t->live = true;
    for (uint32_t p = 0; p < t->nparts; p++) {
        t->on[t->part_worker[p]] = true;
        t->value[t->part_worker[p]] = calloc(t->count, sizeof(int32_t));
    }
    fill(t);
}

static void drop_tensor(struct model_tensor *t)
{
    for (uint32_t w = 0; w < workers; w++)
        free(t->value[w]);
    memset(t, 0, sizeof *t);
}

static void new_domain(uint32_t d)
{
    struct model_domain *domain = &domains[d];
    uint32_t order[MAX_WORKERS];
    for (uint32_t i = 0; i < workers; i++)
        order[i] = i;
    for (uint32_t i = workers; i > 1; i--) {
        uint32_t j = roll(i), swap = order[i - 1];
        order[i - 1] = order[j];
        order[j] = swap;
    }
    memset(domain, 0, sizeof *domain);
    domain->size = d == 0 ? workers : 1 + roll(workers);
    memcpy(domain->workers, order, domain->size * sizeof *order);
    uint32_t count = 4 * (1 + roll(20));
    struct peal_domain_buffer buffer = {.name = "g", .dtype = PEAL_I32, .count = count};
    bool has_buffer = d % 2 == 1;
    struct peal_domain_spec spec = {.workers = domain->workers,
                                    .nworkers = domain->size,
                                    .buffers = &buffer,
                                    .nbuffers = has_buffer};
    must(peal_domain_new(host, &spec, &domain->handle), "domain");
    domain->live = true;
    if (!has_buffer)
        return;
    struct model_tensor *t = &tensors[ntensors++];
    memset(t, 0, sizeof *t);
    t->live = t->is_buffer = true;
    t->domain = d;
    t->count = count;
    must(peal_domain_tensor(host, domain->handle, "g", &t->handle), "buffer");
    for (uint32_t m = 0; m < domain->size; m++) {
        t->part_worker[t->nparts++] = domain->workers[m];
        t->on[domain->workers[m]] = true;
        t->value[domain->workers[m]] = calloc(count, sizeof(int32_t));
    }
}

/* ---- tasks ---- */

struct task {
    enum kind kind;
    struct model_tensor *x, *y;
    uint32_t size, team[MAX_WORKERS];
    uint32_t first_x, first_y, n; /* elements of each member's part */
    uint32_t root;
    int32_t k;
};

/* Applies a task to the model, for all members at once: inputs are read before anything is
 * written. */
static void interpret(const struct task *t)
{
    static int32_t in[MAX_WORKERS][MAX_COUNT], out[MAX_WORKERS][MAX_COUNT];
    bool lost[MAX_WORKERS], any = false;
    for (uint32_t m = 0; m < t->size; m++) {
        uint32_t w = t->team[m];
        memcpy(in[m], t->x->value[w] + t->first_x, t->n * sizeof(int32_t));
        memcpy(out[m], t->y->value[w] + t->first_y, t->n * sizeof(int32_t));
        lost[m] = t->x->lost[w] || dead[w];
        if (t->kind == ADD || t->kind == MIX || t->kind == WINDOW)
            lost[m] |= t->y->lost[w];
        any |= lost[m];
    }
    uint32_t part = t->n / t->size;
    for (uint32_t m = 0; m < t->size; m++) {
        for (uint32_t i = 0; i < t->n; i++) {
            uint32_t x = (uint32_t)in[m][i], y = (uint32_t)out[m][i], sum = 0;
            for (uint32_t q = 0; q < t->size; q++)
                sum += (uint32_t)in[q][i];
            switch (t->kind) {
            case TWICE:
                y = x + x;
                break;
            case ADD:
                y = x + y;
                break;
            case SHIFT:
                y = (uint32_t)in[(m + t->size - 1) % t->size][i];
                break;
            case BROADCAST:
                y = (uint32_t)in[t->root][i];
                break;
            case GATHER:
                y = (uint32_t)in[i / part][i % part];
                break;
            case EXCHANGE:
                y = (uint32_t)in[i / part][m * part + i % part];
                break;
            case MIX:
                y = y * 3 + x + (uint32_t)t->k + m;
                break;
            default:
                y = sum;
            }
            out[m][i] = (int32_t)y;
        }
    }
    for (uint32_t m = 0; m < t->size; m++) {
        uint32_t w = t->team[m];
        memcpy(t->y->value[w] + t->first_y, out[m], t->n * sizeof(int32_t));
        /* A function fails on one member, a kernel on all. The model loses whole parts, so it may
         * lose more than is lost, which check_tensor allows. */
        t->y->lost[w] |= t->kind == MIX ? lost[m] : any;
    }
}

static bool has_parts(const struct model_tensor *t, const struct task *task)
{
    for (uint32_t m = 0; m < task->size; m++) {
        if (!t->live || !t->on[task->team[m]])
            return false;
    }
    return true;
}

static struct model_tensor *pick(const struct task *task)
{
    for (uint32_t tries = 0; tries < 30; tries++) {
        struct model_tensor *t = &tensors[roll(ntensors)];
        if (has_parts(t, task))
            return t;
    }
    return NULL;
}

/* False: no task can be made of these tensors and members. */
static bool make_task(struct task *t, uint32_t *domain)
{
    memset(t, 0, sizeof *t);
    t->kind = (enum kind)roll(KINDS);
    *domain = roll(ndomains + 1);
    if (*domain == ndomains && t->kind <= MIX) {
        t->size = 1;
        t->team[0] = roll(workers);
    } else {
        *domain %= ndomains;
        t->size = domains[*domain].size;
        memcpy(t->team, domains[*domain].workers, sizeof t->team);
    }
    t->x = pick(t);
    t->y = pick(t);
    t->k = (int32_t)roll(100);
    t->root = roll(t->size);
    if (t->kind == WINDOW) {
        for (uint32_t i = 0; i < ntensors; i++) {
            if (tensors[i].is_buffer && tensors[i].live && tensors[i].domain == *domain)
                t->x = t->y = &tensors[i];
        }
        t->n = t->x ? t->x->count : 0;
        return t->x && t->x->is_buffer && t->x->domain == *domain && t->x == t->y;
    }
    if (!t->x || !t->y || t->x == t->y)
        return false;
    uint32_t shorter = t->x->count < t->y->count ? t->x->count : t->y->count;
    t->n = 1 + roll(shorter);
    if (t->kind == GATHER || t->kind == EXCHANGE)
        t->n = t->n / t->size * t->size;
    if (t->n == 0)
        return false;
    t->first_x = roll(t->x->count - t->n + 1);
    t->first_y = roll(t->y->count - t->n + 1);
    return true;
}

static enum peal_status submit(const struct task *t, uint32_t domain)
{
    struct peal_task_arg x =
        peal_arg_part(t->x->handle, t->first_x, t->kind == GATHER ? t->n / t->size : t->n);
    struct peal_task_arg y = peal_arg_part(t->y->handle, t->first_y, t->n);
    struct peal_task_arg args[3] = {x, y, peal_arg_reduce(PEAL_SUM)};
    struct peal_task_spec spec = {.work = works[t->kind], .args = args, .nargs = 3};
    if (t->kind == TWICE || t->kind == ADD || t->kind == SHIFT || t->kind == GATHER ||
        t->kind == EXCHANGE)
        spec.nargs = 2;
    if (t->kind == BROADCAST || t->kind == MIX)
        args[2] = peal_arg_int(t->kind == MIX ? t->k : (int32_t)t->root);
    if (t->kind == WINDOW) {
        args[0] = peal_arg_tensor(t->x->handle);
        args[1] = peal_arg_reduce(PEAL_SUM);
        spec.nargs = 2;
    }
    if (domain < ndomains)
        spec.domain = domains[domain].handle;
    else
        spec.worker = t->team[0];
    return peal_host_submit(host, &spec, NULL);
}

/* ---- checks ---- */

static uint32_t lost_parts, read_parts;

static void check_tensor(const struct model_tensor *t)
{
    int32_t data[MAX_COUNT];
    if (!t->live)
        return;
    for (uint32_t p = 0; p < t->nparts; p++) {
        uint32_t w = t->part_worker[p];
        enum peal_status status =
            peal_tensor_read_part(host, t->handle, p, data, t->count * sizeof *data);
        read_parts++;
        if (killing && t->lost[w] && status != PEAL_OK) {
            lost_parts++;
            continue;
        }
        if (killing && dead[w])
            continue;
        must(status, "read");
        if (killing && t->lost[w])
            continue;
        for (uint32_t i = 0; i < t->count; i++) {
            if (data[i] == t->value[w][i])
                continue;
            fprintf(stderr, "tensor %d on worker %u: element %u is %d, not %d\n",
                    (int)(t - tensors), w, i, data[i], t->value[w][i]);
            exit(1);
        }
    }
}

static bool is_member(const struct model_domain *domain, uint32_t worker)
{
    for (uint32_t m = 0; m < domain->size; m++) {
        if (domain->workers[m] == worker)
            return true;
    }
    return false;
}

/* Kills a worker. All tasks submitted so far may have been cut short: the model marks what may be
 * lost. */
static void kill_worker(void)
{
    uint32_t w = roll(workers);
    if (dead[w])
        return;
    dead[w] = true;
    kill((pid_t)peal_host_pid(host, w), SIGKILL);
    for (uint32_t i = 0; i < ntensors; i++)
        tensors[i].lost[w] = true;
    /* Tasks of its domains may be running: all parts on their members may be lost. */
    for (uint32_t d = 0; d < ndomains; d++) {
        if (!is_member(&domains[d], w))
            continue;
        for (uint32_t m = 0; m < domains[d].size; m++) {
            for (uint32_t i = 0; i < ntensors; i++)
                tensors[i].lost[domains[d].workers[m]] |= tensors[i].on[domains[d].workers[m]];
        }
    }
}

static void open_host(const char *platform)
{
    struct peal_function functions[] = {
        {.name = "mix", .run = mix, .parameters = "in, inout, int", .cost_ps = 1000}};
    struct peal_host_open options = {.workers = workers,
                                     .platform = platform,
                                     .functions = functions,
                                     .nfunctions = 1,
                                     .memory = 16 << 20,
                                     .timeout_ms = 600000};
    if (peal_host_open(&options, &host) != PEAL_OK) {
        fprintf(stderr, "open: %s\n", peal_host_error(NULL));
        exit(1);
    }
    for (uint32_t i = 0; i < KINDS; i++) {
        if (i == MIX)
            must(peal_work_function(host, "mix", &works[i]), "mix");
        else
            must(peal_work_kernel(host, i <= SHIFT ? text : NULL, kernels[i], &works[i]),
                 kernels[i]);
    }
}

static void run_graph(const char *platform, uint32_t ntasks, uint32_t kills)
{
    memset(domains, 0, sizeof domains);
    memset(tensors, 0, sizeof tensors);
    memset(dead, 0, sizeof dead);
    ntensors = 0;
    open_host(platform);
    ndomains = MAX_DOMAINS;
    for (uint32_t d = 0; d < ndomains; d++)
        new_domain(d);
    while (ntensors < MAX_TENSORS)
        new_tensor(&tensors[ntensors++]);
    uint32_t submitted = 0, refused = 0;
    for (uint32_t i = 0; i < ntasks;) {
        struct task task;
        uint32_t domain, percent = roll(100);
        struct model_tensor *t = &tensors[roll(ntensors)];
        if (kills && roll(ntasks) < kills)
            kill_worker();
        if (percent < 2 && !t->is_buffer && !killing) {
            must(peal_tensor_free(host, t->handle), "free");
            drop_tensor(t);
            new_tensor(t);
        } else if (percent < 4) {
            fill(t);
        } else if (percent < 5 && !killing) {
            check_tensor(t);
        }
        if (!make_task(&task, &domain))
            continue;
        i++;
        enum peal_status status = submit(&task, domain);
        if (killing && status == PEAL_PEER_DEAD) {
            refused++;
            continue;
        }
        must(status, kernels[task.kind] ? kernels[task.kind] : "mix");
        submitted++;
        interpret(&task);
    }
    enum peal_status status = peal_host_wait_all(host);
    if (!killing)
        must(status, "wait all");
    for (uint32_t i = 0; i < ntensors; i++)
        check_tensor(&tensors[i]);
    printf("%s, %u workers: %u tasks, %u refused, %u of %u parts lost\n", peal_host_platform(host),
           workers, submitted, refused, lost_parts, read_parts);
    for (uint32_t i = 0; i < ntensors; i++)
        drop_tensor(&tensors[i]);
    peal_host_close(host);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: graph_test PLATFORM WORKERS TASKS SEED [GRAPHS [KILLS]]\n");
        return 2;
    }
    uint32_t max_workers = (uint32_t)atoi(argv[2]), ntasks = (uint32_t)atoi(argv[3]);
    uint64_t seed = strtoull(argv[4], NULL, 10);
    uint32_t graphs = argc > 5 ? (uint32_t)atoi(argv[5]) : 1;
    uint32_t kills = argc > 6 ? (uint32_t)atoi(argv[6]) : 0;
    if (seed == 0)
        seed = (uint64_t)time(NULL);
    killing = kills > 0;
    for (uint32_t g = 0; g < graphs; g++) {
        printf("seed %llu\n", (unsigned long long)(seed + g));
        fflush(stdout);
        state = (seed + g) * 0x9e3779b97f4a7c15u + 1;
        bool listed = strncmp(argv[1], "hosts:", 6) == 0; /* the list has the number of workers */
        workers = graphs > 1 && !listed ? 2 + g % (max_workers - 1) : max_workers;
        lost_parts = read_parts = 0;
        run_graph(argv[1], ntasks, kills);
    }
    return 0;
}
