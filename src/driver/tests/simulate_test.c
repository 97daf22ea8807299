/* SPDX-License-Identifier: Apache-2.0 */
/* peal_simulate with every kind of operation: a library kernel's data against loops. */
#include <peal/simulate.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, COUNT = 37 };

static int failures;
#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                        \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static char error[512];

static enum peal_status simulate(const char *text, const char *name, enum peal_dtype dtype,
                                 size_t size, void *x, void *y, enum peal_reduction op,
                                 const char *reduction)
{
    void *xs[RANKS], *ys[RANKS];
    for (int r = 0; r < RANKS; r++) {
        xs[r] = (char *)x + (size_t)r * COUNT * size;
        ys[r] = (char *)y + (size_t)r * COUNT * size;
    }
    struct peal_simulate_arg args[] = {{.kind = PEAL_ARG_BUFFER, .data = xs, .bytes = COUNT * size},
                                       {.kind = PEAL_ARG_BUFFER, .data = ys, .bytes = COUNT * size},
                                       {.kind = PEAL_ARG_REDUCE, .reduce = op}};
    struct peal_simulate request = {.text = text,
                                    .name = name,
                                    .machine = "mesh4x4",
                                    .ranks = RANKS,
                                    .dtype = dtype,
                                    .args = args,
                                    .nargs = 3,
                                    .error = error,
                                    .error_cap = sizeof error,
                                    .reduction = reduction};
    struct peal_simulated out = {0};
    enum peal_status status = peal_simulate(&request, &out, sizeof out);
    check(status != PEAL_OK || out.time_ps > 0);
    return status;
}

static float x[RANKS][COUNT], y[RANKS][COUNT];

static void fill(void)
{
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++) {
            x[r][i] = (float)(8 * (r + 1) + i % 5);
            y[r][i] = -1;
        }
    }
}

/* a / 2 + b of the ranks up to `last`, from rank 0 on. */
static float fold(int last, int i)
{
    float value = x[0][i];
    for (int r = 1; r <= last; r++)
        value = value / 2 + x[r][i];
    return value;
}

static void test_user_defined(void)
{
    static const char mine[] = "reduce mine(a, b) = a / 2 + b";
    static const char own[] = "reduce mine(a, b) = a / 2 + b\n"
                              "kernel k(in x: T[n], out y: T[n], op: reduce) {\n"
                              "    window slot: T[n]\n"
                              "    signal ready[nranks]\n"
                              "    slot = x\n"
                              "    for p in peers { notify ready[rank]@p += 1 }\n"
                              "    for p in peers { wait ready[p] >= 1 }\n"
                              "    let acc = slot@0\n"
                              "    for q in 1 .. nranks { acc = op(acc, slot@q) }\n"
                              "    y = acc\n"
                              "}\n";
    fill();
    check(simulate(NULL, "allreduce_small", PEAL_F32, 4, x, y, PEAL_SUM, mine) == PEAL_OK);
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            check(y[r][i] == fold(RANKS - 1, i));
    }
    fill();
    check(simulate(own, NULL, PEAL_F32, 4, x, y, PEAL_SUM, "mine") == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        check(y[2][i] == fold(RANKS - 1, i));
    fill();
    check(simulate(NULL, "scan_relay", PEAL_F32, 4, x, y, PEAL_SUM, mine) == PEAL_OK);
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            check(y[r][i] == fold(r, i));
    }
    fill();
    check(simulate(NULL, "exscan_relay", PEAL_F32, 4, x, y, PEAL_SUM, mine) == PEAL_OK);
    for (int i = 0; i < COUNT; i++) {
        check(y[0][i] == -1);
        for (int r = 1; r < RANKS; r++)
            check(y[r][i] == fold(r - 1, i));
    }
}

/* A kernel sees the machine's levels, and without a number of ranks it runs on all of them. */
static void test_levels(void)
{
    static const char text[] = "kernel k(out y: T[n]) {\n"
                               "    y[0] = fill(100 * program_id(2) + 10 * program_id(1), 1)\n"
                               "    y[1] = fill(program_id(0), 1)\n"
                               "    y[2] = fill(nranks, 1)\n"
                               "}\n";
    enum { ALL = 128 };
    static float at[ALL][3];
    void *data[ALL];
    for (int r = 0; r < ALL; r++)
        data[r] = at[r];
    struct peal_simulate_arg arg = {.kind = PEAL_ARG_BUFFER, .data = data, .bytes = sizeof at[0]};
    struct peal_simulate request = {.text = text,
                                    .machine = "system2x4x16",
                                    .dtype = PEAL_F32,
                                    .args = &arg,
                                    .nargs = 1,
                                    .error = error,
                                    .error_cap = sizeof error};
    struct peal_simulated out = {0};
    check(peal_simulate(&request, &out, sizeof out) == PEAL_OK);
    float seen[2][4] = {{0}};
    for (int r = 0; r < ALL; r++) {
        int sip = r / 64, cube = (int)at[r][0] % 100 / 10;
        check((int)at[r][0] / 100 == sip && at[r][2] == ALL);
        check(at[r][1] == seen[sip][cube]++); /* in rank order */
    }
    for (int i = 0; i < 8; i++)
        check(seen[i / 4][i % 4] == 16);
    request.ranks = ALL + 1;
    check(peal_simulate(&request, &out, sizeof out) == PEAL_INVALID);
}

static void test_pairs(void)
{
    struct pair {
        float value;
        int32_t index;
    } in[RANKS][COUNT], out[RANKS][COUNT];
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++)
            in[r][i] = (struct pair){(float)((r * 7 + i * 3) % 5), r};
    }
    check(simulate(NULL, "allreduce_ring", PEAL_F32_I32, 8, in, out, PEAL_MINLOC, NULL) == PEAL_OK);
    for (int i = 0; i < COUNT; i++) {
        struct pair best = in[0][i];
        for (int r = 1; r < RANKS; r++)
            best = in[r][i].value < best.value ? in[r][i] : best;
        for (int r = 0; r < RANKS; r++)
            check(out[r][i].value == best.value && out[r][i].index == best.index);
    }
}

static void test_complex(void)
{
    float in[RANKS][COUNT][2], out[RANKS][COUNT][2];
    for (int r = 0; r < RANKS; r++) {
        for (int i = 0; i < COUNT; i++) {
            in[r][i][0] = (float)(r + i);
            in[r][i][1] = (float)(r - i);
        }
    }
    check(simulate(NULL, "scan_doubling", PEAL_CF32, 8, in, out, PEAL_SUM, NULL) == PEAL_OK);
    for (int i = 0; i < COUNT; i++)
        check(out[3][i][0] == (float)(6 + 4 * i) && out[3][i][1] == (float)(6 - 4 * i));
}

static void test_refused(void)
{
    const struct {
        int line;
        enum peal_reduction op;
        const char *reduction, *words;
    } rows[] = {
        {__LINE__, PEAL_USER_REDUCTION, NULL, "'reduction'"},
        {__LINE__, (enum peal_reduction)77, NULL, "there is no operation 77"},
        {__LINE__, PEAL_SUM, "other", "there is no reduction 'other'"},
        {__LINE__, PEAL_SUM, "reduce mine(a, b) = a +", ""},
        {__LINE__, PEAL_MINLOC, NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill();
        enum peal_status status =
            simulate(NULL, "allreduce_ring", PEAL_F32, 4, x, y, rows[i].op, rows[i].reduction);
        if (status != PEAL_INVALID || !error[0] || !strstr(error, rows[i].words)) {
            fprintf(stderr, "line %d: %s: %s\n", rows[i].line, peal_status_text(status), error);
            failures++;
        }
    }
}

int main(void)
{
    test_user_defined();
    test_levels();
    test_pairs();
    test_complex();
    test_refused();
    return failures > 0;
}
