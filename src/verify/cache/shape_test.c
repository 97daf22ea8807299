/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a plan ignores lengths and nothing else: changing any other number gives another
 * shape. If the shape ignored another number, the cache would find the proof of another plan. */
#include "verify/cache/cache.h"

#include "base/tests/unit.h"
#include "plan/tests/made.h"

/* Every kind of op except matmul, which has no shape, in two texts: a lane with a `when` has no
 * slots. */
static const char cells[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                            "    window w: T[2 * n]\n"
                            "    signal s[nranks]\n"
                            "    signal shared all\n"
                            "    signal raw lock[2]\n"
                            "    let right = (rank + 1) % nranks\n"
                            "    let left = (rank - 1) % nranks\n"
                            "    w[(launch mod 2) * n +: n] = x\n"
                            "    y = x\n"
                            "    y = select(x, y, w[0 +: n])\n"
                            "    for p in peers { notify s[rank]@p += 1 }\n"
                            "    for p in peers { wait s[p] >= 1 at launch - 1 }\n"
                            "    notify all@right += 1\n"
                            "    notify all@left += 1\n"
                            "    wait all >= 2\n"
                            "    w@right[0 +: n] += x\n"
                            "    flush to right\n"
                            "    fence release device\n"
                            "    let seen = peek lock[0]\n"
                            "    let got = fetch_add(lock[0]@right, 1)\n"
                            "    let old = compare_swap(lock[1]@right, 0, 1)\n"
                            "    take lock[1]@left from 1 to 0\n"
                            "    when got >= 1 { w[0 +: n] = 1 }\n"
                            "    when old + 1 < 3 { notify lock[0]@left = 2 }\n"
                            "    wait lock[0] >= seen\n"
                            "    notify lock[0] = 2 * launch + 1\n"
                            "}\n";
static const char slots[] = "kernel k(in x: T[n], out y: T[n], op: reduce) {\n"
                            "    let right = (rank + 1) % nranks\n"
                            "    let left = (rank - 1) % nranks\n"
                            "    send x to right\n"
                            "    send x to left\n"
                            "    let a: T[n] = recv_slot from left\n"
                            "    let b: T[n] = recv_slot from right\n"
                            "    y = final(op, op(a, b))\n"
                            "    free a\n"
                            "    free b\n"
                            "    send y to right\n"
                            "    y = recv from left\n"
                            "}\n";

static struct peal_plan *make(const char *text)
{
    struct made m;
    made_begin(&m, text);
    struct peal_plan *plan = made_plan(&m,
                                       (struct peal_bind){.nranks = 4,
                                                          .rank = PEAL_NONE,
                                                          .dtype = PEAL_F32,
                                                          .reduce = PEAL_AVG,
                                                          .symmetric = true},
                                       6);
    made_end(&m);
    return plan;
}

struct changed {
    struct peal_plan *plan;
    char shape[PEAL_SHA256_HEX + 1];
    unsigned count;
};

/* Called after one number of the plan was changed. */
static void expect_other(struct changed *c, const char *name, uint64_t index)
{
    char shape[PEAL_SHA256_HEX + 1];
    (void)peal_plan_shape(c->plan, shape);
    if (strcmp(shape, c->shape) == 0)
        fail_msg("the shape forgets %s %llu", name, (unsigned long long)index);
    c->count++;
}

/* Changes a number of `bytes` bytes, and restores it. */
static void change(struct changed *c, void *number, size_t bytes, const char *name, uint64_t index)
{
    uint64_t kept = 0, other;
    memcpy(&kept, number, bytes);
    other = kept ^ 1;
    memcpy(number, &other, bytes);
    expect_other(c, name, index);
    memcpy(number, &kept, bytes);
}
#define CHANGE(c, number, index) change((c), &(number), sizeof(number), #number, (index))

static void change_sync(struct changed *c, struct peal_op *op, uint64_t i)
{
    CHANGE(c, op->flags, i);
    CHANGE(c, op->sync.rank, i);
    CHANGE(c, op->sync.after, i);
    CHANGE(c, op->sync.value, i);
    if (op->sync.phases == PEAL_NONE)
        CHANGE(c, op->sync.cell, i);
}

/* Does the number have another value below `count`, so that no index leaves its table? */
static bool has_other(uint64_t number, uint64_t count)
{
    return (number ^ 1) < count;
}

static void change_ref(struct changed *c, struct peal_ref *ref, uint64_t i)
{
    if (ref->buf != PEAL_BUF_CONST && has_other(ref->rank, c->plan->nranks))
        CHANGE(c, ref->rank, i);
    if (ref->buf == PEAL_BUF_CONST)
        CHANGE(c, ref->offset, i);
    if (ref->buf == PEAL_BUF_SLOT)
        CHANGE(c, ref->row, i);
    if (ref->buf < PEAL_BUF_SLOT && has_other(ref->buf, c->plan->bufs.count))
        CHANGE(c, ref->buf, i);
}

static void change_mem(struct changed *c, struct peal_op *op, uint64_t i)
{
    struct peal_ref *refs = (struct peal_ref *)((char *)c->plan + c->plan->refs.offset);
    CHANGE(c, op->flags, i);
    bool is_channel = op->kind == PEAL_OP_SEND || op->kind == PEAL_OP_RECV ||
                      op->kind == PEAL_OP_RECV_SLOT || op->kind == PEAL_OP_FREE;
    bool can_change = !is_channel || has_other(op->mem.channel, c->plan->channels.count);
    if (op->kind != PEAL_OP_COPY && op->kind != PEAL_OP_END && op->kind != PEAL_OP_LAUNCH &&
        can_change)
        CHANGE(c, op->mem.channel, i); /* or target, or divisor */
    if (op->kind == PEAL_OP_WHEN) {
        CHANGE(c, op->fn, i);
        CHANGE(c, op->mem.count, i);
        CHANGE(c, op->mem.rows, i);
    }
    if (op->kind == PEAL_OP_LAUNCH) {
        CHANGE(c, op->mem.count, i);
        CHANGE(c, op->mem.rows, i);
    }
    if (op->kind == PEAL_OP_COMPUTE || op->kind == PEAL_OP_ACCUMULATE)
        CHANGE(c, op->fn, i);
    for (uint32_t k = 0; k < peal_op_nrefs(op); k++)
        change_ref(c, &refs[op->mem.ref + k], i);
}

static void change_ops(struct changed *c, bool kinds[PEAL_OP_KIND_COUNT])
{
    struct peal_op *op = (struct peal_op *)((char *)c->plan + c->plan->ops.offset);
    for (uint64_t i = 0; i < c->plan->ops.count; i++) {
        kinds[op[i].kind] = true;
        if (peal_op_is_sync(&op[i]))
            change_sync(c, &op[i], i);
        else
            change_mem(c, &op[i], i);
    }
}

static void change_tables(struct changed *c)
{
    CHANGE(c, c->plan->flags, 0);
    CHANGE(c, c->plan->contract, 0);
    CHANGE(c, c->plan->dtype, 0);
    CHANGE(c, c->plan->reduce, 0);
    CHANGE(c, c->plan->root, 0);
    for (uint32_t i = 0; i < c->plan->channels.count; i++) {
        struct peal_channel *ch =
            (struct peal_channel *)((char *)c->plan + c->plan->channels.offset) + i;
        CHANGE(c, ch->sender, i);
        CHANGE(c, ch->receiver, i);
        CHANGE(c, ch->depth, i);
        CHANGE(c, ch->sender_lane, i);
        CHANGE(c, ch->receiver_lane, i);
    }
    for (uint64_t i = 0; i < c->plan->totals.count; i++)
        CHANGE(c, ((int64_t *)((char *)c->plan + c->plan->totals.offset))[i], i);
}

TEST(the_shape_forgets_lengths_only)
{
    const char *const texts[] = {cells, slots};
    bool kinds[PEAL_OP_KIND_COUNT] = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct changed c = {.plan = make(texts[i])};
        assert_true(peal_plan_shape(c.plan, c.shape));
        change_ops(&c, kinds);
        change_tables(&c);
        assert_true(c.count > 100);
        free(c.plan);
    }
    for (int kind = 0; kind < PEAL_OP_KIND_COUNT; kind++) {
        if (!kinds[kind] && kind != PEAL_OP_MATMUL)
            fail_msg("no op of kind %s", peal_op_info((enum peal_op_kind)kind)->name);
    }
}

int main(void)
{
    return unit_run();
}
