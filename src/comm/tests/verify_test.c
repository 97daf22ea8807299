/* SPDX-License-Identifier: Apache-2.0 */
/* peal_verify through the public header only: what is proved, what a counterexample contains, what
 * is refused. */
#include "base/tests/unit.h"

#include <peal/verify.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char racy[] =
    "kernel racy(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
    "    window part: T[n]\n"
    "    signal ready\n"
    "    let right = (rank + 1) % nranks\n"
    "    let left = (rank - 1) % nranks\n"
    "    part = x\n"
    "    notify ready@left += 1\n"
    "    wait ready >= 1\n"
    "    y = op(part, part@right)\n"
    "}\n";

static const char stuck[] = "kernel stuck(in x: T[n], out y: T[n]) {\n"
                            "    signal go\n"
                            "    wait go >= 1\n"
                            "    notify go@((rank + 1) % nranks) += 1\n"
                            "    y = x\n"
                            "}\n";

/* Right as long as the root stays the same, a race when it changes. */
static const char rooted[] = "kernel rooted(in x: T[n], out y: T[n], root: int)\n"
                             "    implements broadcast {\n"
                             "    window w: T[n]\n"
                             "    signal sent[nranks], got[nranks]\n"
                             "    if rank == root {\n"
                             "        for p in peers { w@p = x notify sent[rank]@p += 1 }\n"
                             "        for p in peers { wait got[p] >= 1 }\n"
                             "        y = x\n"
                             "    } else {\n"
                             "        wait sent[root] >= 1\n"
                             "        y = w\n"
                             "        notify got[rank]@root += 1\n"
                             "    }\n"
                             "}\n";

static const char wrong[] = "kernel wrong(in x: T[n], out y: T[n], op: reduce)\n"
                            "    implements allreduce { y = x }\n";

static struct peal_verdict *ask(const char *text, uint32_t ranks, uint64_t count)
{
    struct peal_verify_args args;
    struct peal_verdict *verdict = NULL;
    peal_verify_args_init(&args);
    args.text = text;
    args.file = "test.peal";
    args.ranks = &ranks;
    args.nranks = 1;
    args.counts = &count;
    args.ncounts = 1;
    assert_int_equal(peal_verify(&args, &verdict), PEAL_OK);
    assert_non_null(verdict);
    assert_int_equal(verdict->struct_size, sizeof *verdict);
    return verdict;
}

/* What is right for sum alone: the operation is written as +. */
TEST(a_kernel_is_tried_with_other_operations)
{
    static const char plus[] = "kernel plus(in x: T[n], out y: T[n], op: reduce)\n"
                               "    implements allreduce {\n"
                               "    for p in peers { send x to p }\n"
                               "    let acc = x\n"
                               "    for p in peers { acc = acc + recv from p }\n"
                               "    y = final(op, acc)\n"
                               "}\n";
    struct peal_verdict *verdict = ask(plus, 3, 4);
    assert_int_equal(verdict->outcome, PEAL_REFUTED);
    assert_int_equal(verdict->operations, 1 << PEAL_SUM);
    peal_verdict_free(verdict);
    struct peal_verify_args args;
    peal_verify_args_init(&args);
    args.library = "allreduce_mesh";
    assert_int_equal(peal_verify(&args, &verdict), PEAL_OK);
    assert_int_equal(verdict->operations, 1 << PEAL_SUM | 1 << PEAL_MAX | 1 << PEAL_AVG);
    peal_verdict_free(verdict);
}

TEST(test_the_library_is_proved)
{
    static const char *const names[] = {"allreduce_ring", "broadcast_flat", "barrier_mesh"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct peal_verify_args args;
        struct peal_verdict *verdict;
        uint32_t ranks[] = {2, 3};
        uint64_t count = 256;
        peal_verify_args_init(&args);
        args.library = names[i];
        args.ranks = ranks;
        args.nranks = 2;
        args.counts = &count;
        args.ncounts = 1;
        assert_int_equal(peal_verify(&args, &verdict), PEAL_OK);
        assert_int_equal(verdict->outcome, PEAL_PROVED);
        assert_string_equal(peal_outcome_name(verdict->outcome), "proved");
        assert_string_equal(verdict->kernel, names[i]);
        assert_null(verdict->counterexample);
        assert_int_equal(verdict->proved, 2);
        assert_true(verdict->reuse >= PEAL_REUSE_REPEATABLE);
        assert_true(verdict->max_launches >= 2);
        peal_verdict_free(verdict);
    }
}

/* Two accesses, each with its step; the steps have their operation, operands and place. */
TEST(test_a_race_has_two_accesses_with_their_steps)
{
    struct peal_verdict *verdict = ask(racy, 3, 4);
    assert_int_equal(verdict->outcome, PEAL_REFUTED);
    const struct peal_counterexample *c = verdict->counterexample;
    assert_non_null(c);
    assert_int_equal(c->fault, PEAL_FAULT_RACE);
    assert_int_equal(c->nranks, 3);
    assert_int_equal(c->count, 4);
    assert_null(c->sequence);
    assert_int_equal(c->naccesses, 2);
    assert_true(c->accesses[0]->writes || c->accesses[1]->writes);
    for (size_t i = 0; i < 2; i++) {
        const struct peal_verdict_access *a = c->accesses[i];
        assert_string_equal(a->buffer, "part");
        assert_int_equal(a->rank, c->accesses[0]->rank);
        assert_int_equal(a->bytes, 4 * a->elements);
        assert_true(a->step < c->nsteps);
        const struct peal_verdict_step *step = c->steps[a->step];
        assert_true(step->collides);
        assert_string_equal(step->place.file, "test.peal");
        assert_true(step->place.line == 6 || step->place.line == 9);
        assert_true(step->noperands >= 2);
        bool found = false;
        for (size_t k = 0; k < step->noperands; k++) {
            const struct peal_verdict_operand *o = step->operands[k];
            found = found || (o->buffer && strcmp(o->buffer, "part") == 0 && o->rank == a->rank &&
                              !!o->writes == !!a->writes);
        }
        assert_true(found);
    }
    peal_verdict_free(verdict);
}

TEST(test_a_deadlock_has_waits_and_cells)
{
    struct peal_verdict *verdict = ask(stuck, 2, 1);
    const struct peal_counterexample *c = verdict->counterexample;
    assert_non_null(c);
    assert_int_equal(c->fault, PEAL_FAULT_DEADLOCK);
    assert_string_equal(peal_fault_name(c->fault), "deadlock");
    assert_true(c->nwaits >= 1);
    for (size_t i = 0; i < c->nwaits; i++) {
        const struct peal_verdict_wait *w = c->waits[i];
        assert_string_equal(w->relation, ">=");
        assert_int_equal(w->expected, 1);
        assert_int_equal(w->actual, 0);
        assert_true(w->in_cycle);
        assert_int_equal(w->nnotifiers, 1);
        assert_int_equal(w->notifiers[0], 1 - w->rank);
        const struct peal_verdict_step *step = c->steps[w->step];
        assert_string_equal(step->kind, "wait");
        assert_string_equal(step->signal, "go");
        assert_int_equal(step->index, 0);
        assert_int_equal(step->cell_rank, w->rank);
        assert_int_equal(step->value, 1);
        assert_true(step->blocked);
        assert_int_equal(step->place.line, 3);
        assert_int_equal(step->place.col, 5);
        assert_true(step->place.len > 0);
    }
    peal_verdict_free(verdict);
}

TEST(test_roots_in_turn_are_part_of_the_proof)
{
    struct peal_verdict *verdict = ask(rooted, 3, 2);
    const struct peal_counterexample *c = verdict->counterexample;
    assert_int_equal(verdict->outcome, PEAL_REFUTED);
    assert_int_equal(verdict->proved, 1); /* alone */
    assert_int_equal(c->fault, PEAL_FAULT_RACE);
    assert_non_null(strstr(c->sequence, "then count 2 root"));
    for (size_t i = 0; i < c->nsteps; i++)
        assert_true(c->steps[i]->kind[0] != '\0'); /* found in the plan of its launch */
    peal_verdict_free(verdict);
}

TEST(test_a_wrong_result_says_what_was_expected)
{
    struct peal_verdict *verdict = ask(wrong, 2, 1);
    const struct peal_counterexample *c = verdict->counterexample;
    assert_int_equal(c->fault, PEAL_FAULT_RESULT);
    assert_non_null(c->wrong);
    assert_string_equal(c->wrong->buffer, "y");
    assert_non_null(strstr(c->wrong->expected, "x@1"));
    assert_null(strstr(c->wrong->obtained, "+"));
    assert_non_null(strstr(verdict->text, "wrong"));
    peal_verdict_free(verdict);
}

TEST(test_errors_in_a_text_have_places)
{
    struct peal_verify_args args;
    struct peal_verdict *verdict;
    peal_verify_args_init(&args);
    args.text = "kernel k(in x: T[n]) {\n    y = x\n}\n";
    args.file = "bad.peal";
    assert_int_equal(peal_verify(&args, &verdict), PEAL_INVALID);
    assert_int_equal(verdict->outcome, PEAL_UNDECIDED);
    assert_true(verdict->nerrors >= 1);
    assert_string_equal(verdict->errors[0]->place.file, "bad.peal");
    assert_int_equal(verdict->errors[0]->place.line, 2);
    assert_non_null(strstr(verdict->text, "bad.peal:2:"));
    peal_verdict_free(verdict);
}

TEST(test_values_are_given_by_name)
{
    static const char text[] = "kernel k(in x: T[n], out y: T[n], shift: int) {\n"
                               "    assert shift == 3, \"three\"\n"
                               "    y = x\n"
                               "}\n";
    struct peal_verify_args args;
    struct peal_verdict *verdict;
    int64_t three = 3, four = 4;
    struct peal_verify_value value = {"shift", &three, 1};
    peal_verify_args_init(&args);
    args.text = text;
    args.values = &value;
    args.nvalues = 1;
    assert_int_equal(peal_verify(&args, &verdict), PEAL_OK);
    assert_int_equal(verdict->outcome, PEAL_PROVED);
    peal_verdict_free(verdict);
    value.values = &four;
    assert_int_equal(peal_verify(&args, &verdict), PEAL_INVALID);
    assert_int_equal(verdict->no_plan, 34); /* 6 counts at 2 ranks, 7 at 3, 4, 5 and 8 */
    peal_verdict_free(verdict);
    value = (struct peal_verify_value){"shft", &three, 1};
    assert_int_equal(peal_verify(&args, &verdict), PEAL_INVALID);
    assert_non_null(strstr(verdict->why, "did you mean 'shift'"));
    peal_verdict_free(verdict);
}

/* A kernel that needs an order which one host keeps and a network does not: one text, two verdicts.
 */
TEST(test_a_network_orders_less)
{
    static const char text[] = "kernel pass(in x: T[n], out y: T[n]) {\n"
                               "    assert nranks == 3, \"three\"\n"
                               "    window w: T[n]\n"
                               "    signal s[2], back\n"
                               "    if rank == 0 { w@2 = x notify s[0]@1 += 1 wait back >= 1 }\n"
                               "    if rank == 1 { wait s[0] >= 1 notify s[1]@2 += 1 }\n"
                               "    if rank == 2 { wait s[1] >= 1 y = w notify back@0 += 1 }\n"
                               "    else { y = x }\n"
                               "}\n";
    static const uint32_t three[] = {3}, apart[] = {0, 0, 1}, together[] = {0, 1, 0};
    static const uint32_t *const nodes[] = {NULL, NULL, apart, together};
    for (int i = 0; i < 4; i++) {
        struct peal_verify_args args;
        struct peal_verdict *verdict;
        peal_verify_args_init(&args);
        args.text = text;
        args.ranks = three;
        args.nranks = 1;
        args.pairwise = i > 0;
        args.nodes = nodes[i];
        args.nnodes = args.nodes ? 3 : 0;
        assert_int_equal(peal_verify(&args, &verdict), PEAL_OK);
        bool refuted = i == 1 || i == 2;
        assert_int_equal(verdict->outcome, refuted ? PEAL_REFUTED : PEAL_PROVED);
        if (refuted)
            assert_int_equal(verdict->counterexample->fault, PEAL_FAULT_RACE);
        peal_verdict_free(verdict);
    }
}

/* A kernel that is right on one shape only. */
TEST(test_nodes_are_given_for_each_rank)
{
    static const char text[] = "kernel k(in x: T[n], out y: T[n]) {\n"
                               "    assert nodes == 2 and seats_of(1) == 3, \"one and three\"\n"
                               "    y = x\n"
                               "}\n";
    static const uint32_t four[] = {4}, right[] = {0, 1, 1, 1}, wrong_size[] = {0, 0, 1, 1},
                          gap[] = {0, 2, 2, 2};
    static const struct {
        const uint32_t *nodes;
        size_t nnodes;
        enum peal_status status;
    } rows[] = {{right, 4, PEAL_OK},
                {right, 3, PEAL_INVALID},
                {wrong_size, 4, PEAL_INVALID},
                {gap, 4, PEAL_INVALID},
                {NULL, 0, PEAL_INVALID}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct peal_verify_args args;
        struct peal_verdict *verdict;
        peal_verify_args_init(&args);
        args.text = text;
        args.ranks = four;
        args.nranks = 1;
        args.nodes = rows[i].nodes;
        args.nnodes = rows[i].nnodes;
        assert_int_equal(peal_verify(&args, &verdict), rows[i].status);
        assert_true(rows[i].status == PEAL_OK || verdict->nerrors > 0);
        peal_verdict_free(verdict);
    }
}

static enum peal_outcome outcome_of(const char *text, const char *library, const char *reduction)
{
    const uint32_t ranks = 3;
    struct peal_verify_args args;
    struct peal_verdict *verdict = NULL;
    peal_verify_args_init(&args);
    args.text = text;
    args.library = library;
    args.ranks = &ranks;
    args.nranks = 1;
    args.reduction = reduction;
    assert_int_equal(peal_verify(&args, &verdict), PEAL_OK);
    enum peal_outcome outcome = verdict->outcome;
    peal_verdict_free(verdict);
    return outcome;
}

/* A fold in rank order is right for any reduction, a ring only for those that may be moved. */
TEST(test_reductions_may_be_the_callers)
{
    static const char with_own[] =
        "reduce mine(a, b) = a / 2 + b\n"
        "kernel k(in x: T[n], out y: T[n], op: reduce) implements allreduce {\n"
        "    allreduce_mesh(x, y, op)\n"
        "}\n";
    assert_int_equal(outcome_of(NULL, "allreduce_mesh", "reduce f(a, b) = a / 2 + b"), PEAL_PROVED);
    assert_int_equal(outcome_of(NULL, "allreduce_ring", "reduce f(a, b) = a / 2 + b"),
                     PEAL_REFUTED);
    assert_int_equal(
        outcome_of(NULL, "allreduce_ring", "reduce f(a, b) commutative associative = a + b"),
        PEAL_PROVED);
    assert_int_equal(outcome_of(with_own, NULL, "mine"), PEAL_PROVED);

    static const char *const bad[] = {"reduce f(a, b) = a + c", "reduce f(a", "nope"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct peal_verify_args args;
        struct peal_verdict *verdict = NULL;
        peal_verify_args_init(&args);
        args.library = "allreduce_mesh";
        args.reduction = bad[i];
        assert_int_equal(peal_verify(&args, &verdict), PEAL_INVALID);
        assert_true(verdict->text[0] != '\0');
        peal_verdict_free(verdict);
    }
}

TEST(test_bad_arguments_are_refused)
{
    uint32_t none = 0;
    uint64_t too_large = UINT64_MAX;
    for (int i = 0; i < 9; i++) {
        struct peal_verify_args args;
        struct peal_verdict *verdict;
        peal_verify_args_init(&args);
        args.library = "allreduce_ring";
        if (i == 0)
            args.library = NULL;
        if (i == 1)
            args.text = wrong;
        if (i == 2)
            args.library = "no_such_kernel";
        if (i == 3) {
            args.library = NULL;
            args.file = "/nonexistent/k.peal";
        }
        if (i == 4) {
            args.ranks = &none;
            args.nranks = 1;
        }
        if (i == 5) {
            args.counts = &too_large;
            args.ncounts = 1;
        }
        if (i == 6)
            args.dtype = (enum peal_dtype)1000;
        if (i == 7)
            args.op = (enum peal_reduction)1000;
        if (i == 8)
            args.struct_size = 3;
        assert_int_equal(peal_verify(&args, &verdict), PEAL_INVALID);
        if (verdict->nerrors < 1 || verdict->why[0] == '\0' || verdict->text[0] == '\0')
            fail_msg("case %d has no error", i);
        peal_verdict_free(verdict);
    }
    peal_verdict_free(NULL);
}

/* Callers built against an older or a newer header. */
TEST(test_the_arguments_may_be_shorter_or_longer)
{
    struct {
        struct peal_verify_args args;
        uint64_t later;
    } grown;
    struct peal_verdict *verdict;
    uint32_t two = 2;
    memset(&grown, 0, sizeof grown);
    peal_verify_args_init(&grown.args);
    grown.args.library = "allreduce_ring";
    grown.args.ranks = &two;
    grown.args.nranks = 1;
    grown.args.struct_size = sizeof grown;
    assert_int_equal(peal_verify(&grown.args, &verdict), PEAL_OK);
    peal_verdict_free(verdict);
    grown.later = 1;
    assert_int_equal(peal_verify(&grown.args, &verdict), PEAL_INVALID);
    peal_verdict_free(verdict);
    grown.args.struct_size = offsetof(struct peal_verify_args, max_states);
    grown.args.max_states = 1; /* beyond the given size: not read */
    assert_int_equal(peal_verify(&grown.args, &verdict), PEAL_OK);
    assert_int_equal(verdict->outcome, PEAL_PROVED);
    peal_verdict_free(verdict);
}

int main(void)
{
    return unit_run();
}
