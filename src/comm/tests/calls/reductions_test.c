/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined reductions in every collective, against a loop over the ranks, with threads as
 * ranks, here and on a simulated machine. The table of algorithms that keep the order of ranks,
 * against the verifier. */
#include "comm/core/communicator.h"
#include "comm/tests/threads_of.h"
#include "lang/lang.h"
#include "plan/plan.h"
#include "run/run.h"
#include "verify/verify.h"

#include <string.h>

enum { RANKS = 4, MAX_COUNT = 3000 };

/* Neither commutative nor associative; associative; both. Values are small whole numbers, exact in f32. */
static const char text[] = "reduce twice(a, b) = 2 * a - b\n"
                           "reduce last(a, b) associative = b\n"
                           "reduce join(a, b) commutative associative = max(a, b)\n"
                           "kernel own(in x: T[n], out y: T[n], op: reduce) {\n"
                           "    window slot: T[n]\n"
                           "    signal here[nranks]\n"
                           "    slot = x\n"
                           "    for p in peers { notify here[rank]@p += 1 }\n"
                           "    for p in peers { wait here[p] >= 1 }\n"
                           "    let acc = slot@0\n"
                           "    for q in 1 .. nranks { acc = op(acc, slot@q) }\n"
                           "    y = twice(acc, x)\n"
                           "    for p in peers { notify here[rank]@p += 1 }\n"
                           "    for p in peers { wait here[p] >= 2 }\n"
                           "}\n";

static const char *const names[] = {"twice", "last", "join"};

static int32_t combine(int which, int32_t a, int32_t b)
{
    if (which == 0)
        return 2 * a - b;
    if (which == 1)
        return b;
    return a > b ? a : b;
}

static int32_t input(uint32_t rank, size_t i)
{
    return (int32_t)((rank * 5 + i * 3) % 17);
}

static int32_t folded(int which, uint32_t ranks, size_t i)
{
    int32_t acc = input(0, i);
    for (uint32_t r = 1; r < ranks; r++)
        acc = combine(which, acc, input(r, i));
    return acc;
}

struct data {
    int32_t x[RANKS * MAX_COUNT], y[RANKS * MAX_COUNT];
    float f[RANKS * MAX_COUNT], g[RANKS * MAX_COUNT];
};

static void fill(struct data *d, uint32_t rank, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        d->x[i] = input(rank, i);
        d->f[i] = (float)d->x[i];
    }
}

static void vectors_are_folded(struct peal_comm *comm, struct data *d, int which,
                               enum peal_reduction op, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    fill(d, rank, n);
    EXPECT(peal_allreduce(comm, d->x, d->y, n, PEAL_I32, op) == PEAL_OK);
    EXPECT(peal_allreduce(comm, d->f, d->g, n, PEAL_F32, op) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(d->y[i] == folded(which, RANKS, i) && d->g[i] == (float)d->y[i]);
    EXPECT(peal_allreduce(comm, d->f, d->f, n, PEAL_F32, op) == PEAL_OK);
    EXPECT(memcmp(d->f, d->g, n * sizeof *d->g) == 0);
    for (uint32_t root = 0; root < RANKS; root += RANKS - 1) {
        EXPECT(peal_reduce(comm, d->x, d->y, n, PEAL_I32, op, root) == PEAL_OK);
        for (size_t i = 0; i < n; i++)
            EXPECT(rank != root || d->y[i] == folded(which, RANKS, i));
    }
    EXPECT(peal_scan(comm, d->x, d->y, n, PEAL_I32, op) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(d->y[i] == folded(which, rank + 1, i));
    memset(d->y, 0x55, n * sizeof *d->y);
    EXPECT(peal_exscan(comm, d->x, d->y, n, PEAL_I32, op) == PEAL_OK);
    for (size_t i = 0; i < n; i++) /* rank 0's is unchanged */
        EXPECT(d->y[i] == (rank ? folded(which, rank, i) : 0x55555555));
}

static void blocks_are_folded(struct peal_comm *comm, struct data *d, int which,
                              enum peal_reduction op, size_t n)
{
    uint32_t rank = peal_comm_rank(comm);
    fill(d, rank, RANKS * n);
    EXPECT(peal_reduce_scatter(comm, d->x, d->y, n, PEAL_I32, op) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(d->y[i] == folded(which, RANKS, rank * n + i));
    uint64_t counts[RANKS] = {n, 0, n / 2, 1};
    size_t first = 0;
    for (uint32_t r = 0; r < rank; r++)
        first += counts[r];
    EXPECT(peal_reduce_scatter_v(comm, d->x, d->y, counts, NULL, PEAL_I32, op) == PEAL_OK);
    for (size_t i = 0; i < counts[rank]; i++)
        EXPECT(d->y[i] == folded(which, RANKS, first + i));
}

static void requests_are_folded(struct peal_comm *comm, struct data *d, int which,
                                enum peal_reduction op, size_t n)
{
    struct peal_request *request;
    fill(d, peal_comm_rank(comm), n);
    EXPECT(peal_iallreduce(comm, d->x, d->y, n, PEAL_I32, op, &request) == PEAL_OK);
    EXPECT(peal_request_wait(request) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(d->y[i] == folded(which, RANKS, i));
}

static void kernels_take_them(struct peal_comm *comm, struct data *d, int which,
                              enum peal_reduction op, size_t n)
{
    struct peal_user_kernel *kernel;
    uint32_t rank = peal_comm_rank(comm);
    fill(d, rank, n);
    EXPECT(peal_user_kernel_load(comm, text, "own", &kernel) == PEAL_OK);
    struct peal_arg args[] = {
        {.struct_size = sizeof *args, .kind = PEAL_ARG_BUFFER, .data = d->x, .bytes = n * 4},
        {.struct_size = sizeof *args, .kind = PEAL_ARG_BUFFER, .data = d->y, .bytes = n * 4},
        {.struct_size = sizeof *args, .kind = PEAL_ARG_REDUCE, .reduce = op}};
    EXPECT(peal_user_kernel_launch(kernel, PEAL_I32, args, 3, NULL, 0) == PEAL_OK);
    for (size_t i = 0; i < n; i++)
        EXPECT(d->y[i] == combine(0, folded(which, RANKS, i), input(rank, i)));
    peal_user_kernel_free(kernel);
}

static void what_is_wrong_is_said(struct peal_comm *comm, struct data *d,
                                  const enum peal_reduction *op)
{
    enum peal_reduction other = PEAL_SUM;
    EXPECT(peal_reduction_declare(comm, "reduce f(a, b) = a + c", NULL, &other) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "knows nothing but its two operands"));
    EXPECT(peal_reduction_declare(comm, text, "nope", &other) == PEAL_INVALID);
    EXPECT(peal_reduction_declare(comm, NULL, NULL, &other) == PEAL_INVALID);
    EXPECT(other == PEAL_SUM);
    EXPECT(peal_reduction_declare(comm, text, "last", &other) == PEAL_OK && other == op[1]);
    EXPECT(peal_allreduce(comm, d->x, d->y, 1, PEAL_F32_I32, op[0]) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "'twice' does not work on f32_i32"));
    EXPECT(peal_allreduce(comm, d->x, d->y, 1, PEAL_I32, (enum peal_reduction)140) == PEAL_INVALID);
    if (peal_comm_simulated_ps(comm))
        return;
    EXPECT(peal_comm_set_algo(comm, "allreduce", "ring") == PEAL_OK);
    EXPECT(peal_allreduce(comm, d->x, d->y, 9, PEAL_I32, op[0]) == PEAL_UNSUPPORTED);
    EXPECT(strstr(peal_comm_error(comm), "'ring' would change the order of 'twice'"));
    EXPECT(peal_allreduce(comm, d->x, d->y, 9, PEAL_I32, op[2]) == PEAL_OK);
    EXPECT(peal_comm_set_algo(comm, "allreduce", NULL) == PEAL_OK);
    EXPECT(peal_comm_set_algo(comm, "scan", "doubling") == PEAL_OK);
    EXPECT(peal_scan(comm, d->x, d->y, 9, PEAL_I32, op[0]) == PEAL_UNSUPPORTED);
    EXPECT(strstr(peal_comm_error(comm), "'doubling' would change the grouping of 'twice'"));
    EXPECT(peal_scan(comm, d->x, d->y, 9, PEAL_I32, op[1]) == PEAL_OK);
    EXPECT(peal_comm_set_algo(comm, "scan", NULL) == PEAL_OK);
}

static void *rank_main(void *argument)
{
    static const size_t counts[] = {0, 1, 7, MAX_COUNT};
    struct peal_comm *comm = argument, *copy;
    struct data *d = malloc(sizeof *d);
    enum peal_reduction op[3];
    EXPECT(d);
    for (int k = 0; k < 3; k++)
        EXPECT(peal_reduction_declare(comm, text, names[k], &op[k]) == PEAL_OK);
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (int k = 0; k < 3; k++) {
            vectors_are_folded(comm, d, k, op[k], counts[c]);
            blocks_are_folded(comm, d, k, op[k],
                              counts[c] + 1 < MAX_COUNT ? counts[c] + 1 : MAX_COUNT);
            requests_are_folded(comm, d, k, op[k], counts[c]);
            if (counts[c])
                kernels_take_them(comm, d, k, op[k], counts[c]);
        }
    }
    what_is_wrong_is_said(comm, d, op);
    EXPECT(peal_comm_dup(comm, &copy) == PEAL_OK);
    vectors_are_folded(copy, d, 0, op[0], 100);
    peal_comm_close(copy);
    free(d);
    return NULL;
}

/* Equal numbers for different formulas: a mismatch on every rank. */
static void *mismatch_main(void *argument)
{
    struct peal_comm *comm = argument;
    enum peal_reduction op;
    float x = 1, y = 0;
    bool odd = peal_comm_rank(comm) == 1;
    const char *own = odd ? "reduce f(a, b) = a - b" : "reduce f(a, b) = a + 2 * b";
    EXPECT(peal_reduction_declare(comm, own, NULL, &op) == PEAL_OK);
    EXPECT(peal_allreduce(comm, &x, &y, 1, PEAL_F32, op) == PEAL_MISMATCH);
    return NULL;
}

/* Is the kernel proved with this reduction, on 2 to 6 ranks? */
static bool is_proved(const char *name, const struct peal_formula *formula)
{
    struct peal_program *program = NULL;
    struct peal_diags diags;
    bool proved = true;
    peal_diags_init(&diags);
    EXPECT(peal_program_builtin(name, &diags, &program) == PEAL_OK);
    const struct peal_kernel *kernel = peal_program_kernel(program, NULL, &diags);
    for (uint32_t ranks = 2; ranks <= 6; ranks++) {
        struct peal_plan_request request = {.kernel = kernel,
                                            .count = 12,
                                            .bind = {.nranks = ranks,
                                                     .rank = PEAL_NONE,
                                                     .dtype = PEAL_F32,
                                                     .reduce = PEAL_USER_REDUCTION,
                                                     .formula = formula,
                                                     .root = ranks - 1}};
        struct peal_plan *plan = NULL;
        struct peal_verification *answer = NULL;
        EXPECT(peal_plan_make(&request, &diags, &plan) == PEAL_OK);
        EXPECT(peal_verify_plan(plan, &(struct peal_verify_options){0}, &answer) == PEAL_OK);
        proved = answer->verdict == PEAL_PROVED;
        peal_verification_free(answer);
        free(plan);
        if (!proved)
            break;
    }
    peal_program_close(program);
    peal_diags_release(&diags);
    return proved;
}

static void the_table_of_orders_is_the_verifiers(void)
{
    struct peal_formula formula = {
        .name = "mine",
        .nsteps = 3,
        .steps = {{.kind = PEAL_FORMULA_A},
                  {.kind = PEAL_FORMULA_B},
                  {.kind = PEAL_FORMULA_APPLY, .fn = PEAL_FN_SUB, .operands = 2}}};
    size_t count;
    const struct peal_algo *algos = peal_algos(&count);
    for (size_t i = 0; i < count; i++) {
        const struct peal_algo *a = &algos[i];
        if (!peal_contract_info(peal_collective_contract(a->collective))->has_reduce)
            continue;
        if (strstr(a->kernel, "_heads") || strstr(a->kernel, "_nodes"))
            continue; /* on one host, as here, they fold; on several they group by host */
        for (uint32_t flags = 0; flags <= PEAL_FORMULA_ASSOCIATIVE;
             flags += PEAL_FORMULA_ASSOCIATIVE) {
            formula.flags = flags;
            bool keeps = peal_algo_keeps(a, flags ? PEAL_MOVES_GROUPS : PEAL_MOVES_NONE);
            if (keeps == is_proved(a->kernel, &formula))
                continue;
            fprintf(stderr, "%s: the table says %s, the verifier does not (flags %u)\n", a->kernel,
                    keeps ? "yes" : "no", flags);
            exit(1);
        }
    }
}

int main(void)
{
    threads_run(RANKS, rank_main);
    threads_run(2, mismatch_main);
    the_table_of_orders_is_the_verifiers();
    setenv("PEAL_PLATFORM", "sim:cube", 1);
    threads_run(RANKS, rank_main);
    printf("ok\n");
    return 0;
}
