/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan cache relies on: the writers of a library kernel's cells depend on ranks and root,
 * not on counts, types, operations and whether it is in place; a resized plan is byte for byte the
 * block that instantiate makes, and its image is that plan's; and calls find the plans that were
 * made when the communicator was opened. */
#include "comm/core/communicator.h"

#include "base/tests/unit.h"
#include "plan/plan.h"
#include "run/run.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Everything a plan can depend on besides kernel, ranks and root. */
static const struct variant {
    int64_t count, capacity;
    enum peal_dtype dtype;
    enum peal_reduction reduce;
    bool in_place;
} variants[] = {
    {16, 16, PEAL_F32, PEAL_SUM, false},   {1, 1, PEAL_F32, PEAL_SUM, true},
    {0, 16, PEAL_F64, PEAL_MAX, false},    {7, 64, PEAL_BF16, PEAL_AVG, true},
    {4096, 4096, PEAL_I8, PEAL_XOR, true}, {65537, 262144, PEAL_I64, PEAL_MIN, false},
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static struct peal_plan *whole_plan(struct peal_program *library, const struct peal_algo *algo,
                                    uint32_t ranks, uint32_t root, const struct variant *v)
{
    struct peal_diags diags;
    struct peal_plan *plan = NULL;
    bool rows = algo->shape == PEAL_SHAPE_ROWS || algo->shape == PEAL_SHAPE_BLOCKS;
    struct peal_bind_value values[2] = {{rows ? "m" : "n", &v->count, 1, false},
                                        {"most", &v->capacity, 1, false}};
    peal_diags_init(&diags);
    const struct peal_kernel *kernel = peal_program_kernel(library, algo->kernel, &diags);
    assert_non_null(kernel);
    struct peal_bind bind = {.nranks = ranks,
                             .rank = PEAL_NONE,
                             .dtype = v->dtype,
                             .reduce = v->reduce,
                             .values = values,
                             .nvalues = algo->shape == PEAL_SHAPE_NONE ? 0 : 1 + algo->has_capacity,
                             .root = root,
                             .in_place = v->in_place,
                             .symmetric = algo->memory != PEAL_PEERS_STAGE,
                             .channel_depth = 4,
                             .slot_bytes = (uint64_t)(v->count + 1) * 8};
    if (peal_instantiate(kernel, &bind, &diags, &plan) != PEAL_OK)
        plan = NULL; /* in place may be refused: then it is never launched */
    peal_diags_release(&diags);
    return plan;
}

static uint32_t *writers_of(const struct peal_plan *plan)
{
    uint32_t *writers = calloc(plan->cells + 1, sizeof *writers);
    peal_multicast_find(plan, writers);
    return writers;
}

/* Closed with peal_program_close. */
static struct peal_program *open_library(struct peal_diags *diags)
{
    struct peal_program *library = NULL;
    peal_diags_init(diags);
    assert_int_equal(peal_program_open("barrier_mesh", diags, &library), PEAL_OK);
    return library;
}

TEST(writers_follow_from_ranks_and_root)
{
    struct peal_diags diags;
    struct peal_program *library = open_library(&diags);
    size_t count, compared = 0;
    const struct peal_algo *algos = peal_algos(&count);
    static const uint32_t sizes[] = {2, 3, 4, 5, 8};
    for (size_t a = 0; a < count; a++) {
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            for (uint32_t root = 0; root < sizes[s]; root += sizes[s] - 1) {
                struct peal_plan *first =
                    whole_plan(library, &algos[a], sizes[s], root, &variants[0]);
                assert_non_null(first);
                uint32_t *writers = writers_of(first);
                for (size_t v = 1; v < VARIANTS; v++) {
                    struct peal_plan *other =
                        whole_plan(library, &algos[a], sizes[s], root, &variants[v]);
                    if (!other)
                        continue;
                    uint32_t *others = writers_of(other);
                    if (first->cells != other->cells ||
                        (first->channels.count > 0) != (other->channels.count > 0) ||
                        memcmp(writers, others, first->cells * sizeof *writers) != 0)
                        fail_msg("'%s' on %u ranks, root %u: variant %zu has other writers",
                                 algos[a].kernel, sizes[s], root, v);
                    compared++;
                    free(others);
                    free(other);
                }
                free(writers);
                free(first);
            }
        }
    }
    assert_true(compared > count * 20);
    peal_program_close(library);
    peal_diags_release(&diags);
}

static bool has_parameter(const struct peal_plan *plan, const struct peal_op *op)
{
    for (uint32_t r = 0; r < peal_op_nrefs(op); r++) {
        uint32_t buf = peal_plan_refs(plan)[op->mem.ref + r].buf;
        if (buf < plan->bufs.count && peal_plan_bufs(plan)[buf].kind == PEAL_BUF_PARAM)
            return true;
    }
    return false;
}

/* Every op of a plan that moves or computes has a parameter among its operands. */
static bool all_ops_have_parameters(const struct peal_plan *plan)
{
    for (uint64_t i = 0; i < plan->ops.count; i++) {
        const struct peal_op *op = &peal_plan_ops(plan)[i];
        if (!peal_op_is_sync(op) && !has_parameter(plan, op))
            return false;
    }
    return true;
}

/* Kernels of rows have few classes of counts, because elements that a launch does not bind cost
 * nothing: each step is cut to the parameters that it touches. */
TEST(rows_are_cut_to_what_is_bound)
{
    struct peal_diags diags;
    struct peal_program *library = open_library(&diags);
    size_t count, compared = 0;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t a = 0; a < count; a++) {
        for (uint32_t k = 0; k < 2 * PEAL_DTYPES * PEAL_REDUCTIONS; k++) {
            struct variant v = {.count = 64,
                                .capacity = 256,
                                .dtype = (enum peal_dtype)(k / 2 % PEAL_DTYPES),
                                .reduce = (enum peal_reduction)(k / 2 / PEAL_DTYPES),
                                .in_place = k % 2};
            if (algos[a].shape != PEAL_SHAPE_ROWS || !peal_reduce_takes(v.reduce, v.dtype))
                continue;
            struct peal_plan *plan = whole_plan(library, &algos[a], 5, 1, &v);
            if (!plan)
                continue;
            if (!all_ops_have_parameters(plan))
                fail_msg("'%s' of %s, %s: an op without parameters", algos[a].kernel,
                         peal_dtype_name(v.dtype), peal_reduce_name(v.reduce));
            compared++;
            free(plan);
        }
    }
    assert_true(compared > 100);
    peal_program_close(library);
    peal_diags_release(&diags);
}

/* ---- resizing ---- */

static struct peal_plan *make_plan(const struct peal_kernel *kernel, const struct peal_algo *algo,
                                   const struct peal_bind *given, int64_t count, int64_t capacity)
{
    bool rows = algo->shape == PEAL_SHAPE_ROWS || algo->shape == PEAL_SHAPE_BLOCKS;
    int64_t groups = 2;
    struct peal_bind_value values[3] = {{rows ? "m" : "n", &count, 1, false}};
    struct peal_bind bind = *given;
    struct peal_plan *plan = NULL;
    bind.values = values;
    bind.nvalues = algo->shape == PEAL_SHAPE_NONE ? 0 : 1;
    if (algo->has_capacity)
        values[bind.nvalues++] = (struct peal_bind_value){"most", &capacity, 1, false};
    if (algo->has_groups)
        values[bind.nvalues++] = (struct peal_bind_value){"groups", &groups, 1, false};
    bind.slot_bytes = (uint64_t)count * peal_dtype_size(bind.dtype);
    return peal_instantiate(kernel, &bind, NULL, &plan) == PEAL_OK ? plan : NULL;
}

/* Sizes of classes, as calls have them: whole lines, and in some a capacity above the count. */
static const struct {
    int64_t count, capacity;
} sizes[] = {{10, 10}, {16, 16}, {48, 64}, {64, 256}, {4096, 4096}, {49152, 65536}};

static const struct {
    enum peal_dtype dtype;
    enum peal_reduction reduce;
} kinds[] = {{PEAL_F32, PEAL_SUM},  {PEAL_F64, PEAL_MAX},  {PEAL_I8, PEAL_XOR},
             {PEAL_I64, PEAL_PROD}, {PEAL_BF16, PEAL_MIN}, {PEAL_F16, PEAL_AVG},
             {PEAL_F64, PEAL_AVG}};

/* The number of sizes that a plan can be resized to, if it is a template. */
static size_t sizes_from(const struct peal_plan *plan)
{
    return plan && peal_plan_is_template(plan) ? sizeof sizes / sizeof *sizes : 0;
}

static struct peal_plan_size size_of(size_t s, const struct peal_bind *bind)
{
    uint64_t count = (uint64_t)sizes[s].count;
    return (struct peal_plan_size){.count = count,
                                   .capacity = (uint64_t)sizes[s].capacity,
                                   .dtype = bind->dtype,
                                   .reduce = bind->reduce,
                                   .channel_depth = bind->channel_depth,
                                   .slot_bytes = count * peal_dtype_size(bind->dtype)};
}

/* All sizes, types and operations from one template each. Returns how many plans were compared. */
static size_t compare_sizes(const struct peal_kernel *kernel, const struct peal_algo *algo,
                            struct peal_bind bind)
{
    size_t compared = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bind.dtype = peal_template_dtype(kinds[k].dtype);
        bind.reduce = peal_template_reduce(kinds[k].reduce);
        struct peal_plan *template =
            make_plan(kernel, algo, &bind, PEAL_TEMPLATE_COUNT, PEAL_TEMPLATE_CAPACITY);
        bind.dtype = kinds[k].dtype;
        bind.reduce = kinds[k].reduce;
        size_t nsizes = sizes_from(template);
        for (size_t s = 0; s < nsizes; s++) {
            struct peal_plan *wanted =
                make_plan(kernel, algo, &bind, sizes[s].count, sizes[s].capacity);
            assert_non_null(wanted);
            struct peal_plan_size size = size_of(s, &bind);
            struct peal_plan *resized = peal_plan_resize(template, &size);
            if (resized->block_len != wanted->block_len ||
                memcmp(resized, wanted, wanted->block_len) != 0)
                fail_msg(
                    "'%s', rank %d of %u, root %d, %s, %s, in place %d, size %zu: not the plan",
                    algo->kernel, (int)bind.rank, bind.nranks, (int)bind.root,
                    peal_dtype_name(bind.dtype), peal_reduce_name(bind.reduce), bind.in_place, s);
            compared++;
            free(wanted);
            free(resized);
        }
        free(template);
    }
    return compared;
}

TEST(resized_plans_are_the_plans)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 5, 8, 16};
    struct peal_diags diags;
    struct peal_program *library = open_library(&diags);
    size_t count, whole = 0, with_parts = 0;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t a = 0; a < count; a++) {
        size_t compared = 0;
        const struct peal_kernel *kernel = peal_program_kernel(library, algos[a].kernel, &diags);
        for (size_t i = 0; i < 4 * sizeof ranks / sizeof *ranks; i++) {
            uint32_t n = ranks[i / 4], root = i % 2 ? n - 1 : 0;
            compared +=
                compare_sizes(kernel, &algos[a],
                              (struct peal_bind){.nranks = n,
                                                 .rank = i % 4 == 3 ? PEAL_NONE : n * (i % 4) / 4,
                                                 .root = root,
                                                 .in_place = i % 4 >= 2,
                                                 .symmetric = algos[a].memory != PEAL_PEERS_STAGE,
                                                 .channel_depth = 4});
        }
        bool prefix =
            algos[a].collective == PEAL_CALL_SCAN || algos[a].collective == PEAL_CALL_EXSCAN;
        size_t of_kinds = prefix ? 5 : 7;                             /* a prefix has no avg */
        size_t all = 4 * sizeof ranks / sizeof *ranks * of_kinds * 6; /* times sizes */
        whole += compared == all;
        with_parts += compared <= all / 7; /* one rank has no parts */
    }
    assert_int_equal(whole + with_parts, count);
    /* ring, ring_slot, biring, mesh2, halving; reduce's nodes; allgather's ring */
    assert_int_equal(with_parts, 7);
    peal_program_close(library);
    peal_diags_release(&diags);
}

/* ---- images ---- */

#define SAME(field, count) (memcmp(a->field, b->field, (size_t)(count) * sizeof *a->field) == 0)

/* True if two images have the same steps at the same places. */
static bool same_image(const struct peal_image *a, const struct peal_image *b)
{
    uint64_t cells = a->plan->cells;
    if (a->nsteps != b->nsteps || a->nplaces != b->nplaces || a->nparams != b->nparams ||
        a->nchannels != b->nchannels || a->nlanes != b->nlanes || a->nbases != b->nbases ||
        a->period != b->period || a->nshared != b->nshared || cells != b->plan->cells)
        return false;
    return SAME(steps, a->nsteps * a->period) && SAME(places, a->nplaces * a->period) &&
           SAME(params, a->nparams) && SAME(channels, a->nchannels) && SAME(lanes, a->nlanes) &&
           SAME(totals, a->nshared * a->period) && SAME(writers, cells) && SAME(notifiers, cells) &&
           a->rank == b->rank && a->size == b->size && a->nregs == b->nregs &&
           a->max_operands == b->max_operands && a->clip == b->clip && a->seq_cst == b->seq_cst &&
           a->count_shift == b->count_shift && a->scratch == b->scratch &&
           a->private_bytes == b->private_bytes && a->region_bytes == b->region_bytes &&
           memcmp(&a->identity, &b->identity, sizeof a->identity) == 0 && a->remote == b->remote &&
           a->bounce_bytes == b->bounce_bytes && a->receives == b->receives &&
           a->plan->contract_in == b->plan->contract_in &&
           a->plan->contract_out == b->plan->contract_out;
}

/* Compares one template's images in a prefault pool with those of instantiated plans, each in
 * memory of its own. Returns how many. */
static size_t compare_images(const struct peal_kernel *kernel, const struct peal_algo *algo,
                             const struct peal_bind *given)
{
    struct peal_prefault prefault;
    size_t compared = 0;
    struct peal_bind bind = *given;
    bind.dtype = PEAL_F32;
    struct peal_plan *whole,
        *template = make_plan(kernel, algo, &bind, PEAL_TEMPLATE_COUNT, PEAL_TEMPLATE_CAPACITY);
    peal_prefault_init(&prefault, 4096, 65536);
    bind.dtype = given->dtype;
    size_t nsizes = sizes_from(template);
    for (size_t s = 0; s < nsizes; s++) {
        struct peal_plan_size size = size_of(s, given);
        struct peal_plan *wanted =
            make_plan(kernel, algo, &bind, sizes[s].count, sizes[s].capacity);
        struct peal_plan *draft = calloc(1, template->block_len);
        uint32_t rank = given->rank == PEAL_NONE ? given->nranks - 1 : given->rank;
        bind.rank = PEAL_NONE;
        whole = make_plan(kernel, algo, &bind, sizes[s].count, sizes[s].capacity);
        bind.rank = given->rank;
        uint32_t *writers = writers_of(whole), *notifiers = calloc(whole->cells + 1, 4);
        peal_notifiers_find(whole, rank, notifiers);
        bool rows = algo->shape == PEAL_SHAPE_ROWS || algo->shape == PEAL_SHAPE_BLOCKS;
        struct peal_image_options made = {.rank = rank,
                                          .clip = true,
                                          .rows_as_bases = rows,
                                          .remote = algo->memory != PEAL_PEERS_STAGE,
                                          .writes = true,
                                          .identity = {{1}},
                                          .writers = writers,
                                          .notifiers = notifiers};
        struct peal_image *a = NULL, *b = NULL;
        struct peal_plan *copy = malloc(wanted->block_len);
        memcpy(copy, wanted, wanted->block_len);
        assert_int_equal(peal_image_new(copy, &made, peal_compute_best(), &a), PEAL_OK);
        made.prefault = &prefault;
        made.template = template;
        made.made = &size;
        peal_plan_resize_into(template, &size, draft);
        assert_int_equal(peal_image_new(draft, &made, peal_compute_best(), &b), PEAL_OK);
        memset(draft, 0xff, template->block_len); /* the image keeps nothing of it */
        if (!same_image(a, b))
            fail_msg("'%s', rank %u of %u, size %zu: not the image", algo->kernel, rank,
                     given->nranks, s);
        assert_memory_equal(peal_image_plan(b), wanted, wanted->block_len);
        assert_memory_equal(peal_image_plan(a), wanted, wanted->block_len);
        compared++;
        peal_image_free(a);
        peal_image_free(b);
        free(wanted);
        free(whole);
        free(draft);
        free(writers);
        free(notifiers);
    }
    peal_prefault_release(&prefault);
    free(template);
    return compared;
}

TEST(images_of_patterns_are_those_of_plans)
{
    static const uint32_t ranks[] = {2, 3, 4, 8};
    struct peal_diags diags;
    struct peal_program *library = open_library(&diags);
    size_t count, compared = 0;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t a = 0; a < count; a++) {
        const struct peal_kernel *kernel = peal_program_kernel(library, algos[a].kernel, &diags);
        for (size_t i = 0; i < 4 * sizeof ranks / sizeof *ranks; i++) {
            uint32_t n = ranks[i / 4], root = i % 2 ? n - 1 : 0;
            compared +=
                compare_images(kernel, &algos[a],
                               &(struct peal_bind){.nranks = n,
                                                   .rank = PEAL_NONE,
                                                   .root = root,
                                                   .dtype = i % 4 ? PEAL_F64 : PEAL_U8,
                                                   .in_place = i % 4 >= 2,
                                                   .symmetric = algos[a].memory != PEAL_PEERS_STAGE,
                                                   .channel_depth = 4});
        }
    }
    assert_true(compared >= (count - 7) * 16 * 6);
    peal_program_close(library);
    peal_diags_release(&diags);
}

/* ---- what is made when a communicator is opened ---- */

struct caller {
    struct peal_comm *comm;
    size_t before, after;
    size_t templates; /* made by calls */
    enum peal_status status;
};

static size_t count_patterns(const struct peal_comm *comm)
{
    size_t algos, count = 0;
    peal_algos(&algos);
    for (size_t i = 0; i < algos; i++) {
        for (const struct peal_template *p = comm->plans.by_algo[i].templates; p; p = p->next)
            count++;
    }
    return count;
}

/* One call of each kind and class: small ones of any size, large ones of whole segments. */
static void *call_all(void *context)
{
    static const uint64_t bytes[] = {16, 64, 256, 1024, 4096, 16384, 65536, 262144};
    struct caller *me = context;
    struct peal_comm *comm = me->comm;
    uint32_t size = peal_comm_size(comm), rank = peal_comm_rank(comm);
    char *a = calloc(size, 262144), *b = calloc(size, 262144);
    enum peal_status s = PEAL_OK;
    me->before = comm->plans.entries.len;
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes && s == PEAL_OK; i++) {
        uint64_t n = bytes[i] / 4;
        s |= peal_barrier(comm);
        s |= peal_allreduce(comm, a, b, n, PEAL_F32, PEAL_SUM);
        s |= peal_allreduce(comm, a, a, n, PEAL_F32, PEAL_SUM);
        s |= peal_reduce(comm, a, b, n, PEAL_F32, PEAL_SUM, 0);
        s |= peal_broadcast(comm, a, n, PEAL_F32, 0);
        s |= peal_broadcast(comm, a, n / 2, PEAL_F64, 0);
        s |= peal_allgather(comm, a, b, n, PEAL_F32);
        s |= peal_allgather(comm, b + rank * bytes[i], b, n, PEAL_F32);
        s |= peal_allgather(comm, a, b, bytes[i], PEAL_I8);
        s |= peal_reduce_scatter(comm, a, b, n, PEAL_F32, PEAL_SUM);
        s |= peal_gather(comm, a, b, n * 2, PEAL_BF16, 0);
        s |= peal_scatter(comm, a, b, n * 4, PEAL_U8, 0);
        s |= peal_all_to_all(comm, a, b, n, PEAL_I32);
    }
    me->after = comm->plans.entries.len;
    me->templates = count_patterns(comm);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes && s == PEAL_OK; i++) {
        s |= peal_reduce(comm, a, b, bytes[i] / 8, PEAL_F64, PEAL_MAX, size - 1);
        s |= peal_broadcast(comm, a, bytes[i] / 4, PEAL_F32, size - 1);
        s |= peal_gather(comm, a, b, bytes[i], PEAL_U8, size - 1);
        s |= peal_scatter(comm, a, b, bytes[i], PEAL_U8, size - 1);
    }
    me->templates = count_patterns(comm) - me->templates;
    me->status = s;
    free(a);
    free(b);
    return NULL;
}

TEST(calls_find_what_was_prepared)
{
    for (uint32_t size = 2; size <= 5; size++) {
        struct peal_comm *comms[5];
        struct caller callers[5] = {0};
        pthread_t threads[5];
        assert_int_equal(peal_comm_open_threads(size, comms), PEAL_OK);
        for (uint32_t r = 0; r < size; r++) {
            callers[r].comm = comms[r];
            assert_int_equal(pthread_create(&threads[r], NULL, call_all, &callers[r]), 0);
        }
        for (uint32_t r = 0; r < size; r++) {
            assert_int_equal(pthread_join(threads[r], NULL), 0);
            assert_int_equal(callers[r].status, PEAL_OK);
            assert_true(callers[r].before > 0);
            assert_int_equal(callers[r].after, callers[r].before);
            assert_int_equal(callers[r].templates == 0, size <= 4); /* for all roots up to four */
        }
        for (uint32_t r = 0; r < size; r++)
            peal_comm_close(comms[r]);
    }
}

int main(void)
{
    return unit_run();
}
