/* SPDX-License-Identifier: Apache-2.0 */
/* A user's kernel in the place of a collective: right data, or refused in words before anything runs.
 *
 * Every form of a kernel, times every collective, times every way to name it to a communicator,
 * times threads, processes, a modelled machine and (TEST_HOSTS) two hosts. The results are compared
 * with what the calls promise, computed here; what a call may not change must be as it was.
 *
 *   own_test threads|processes|machine short|all
 *   own_test kernels FOLDER    writes the kernels of the matrix, COLLECTIVE-FORM.peal, for the suites of
 *                              Python, PyTorch and MPI, which have ways of their own to name one */
#include "comm/tests/any_call.h"
#include "comm/tests/children.h"
#undef EXPECT
#include "comm/tests/threads_of.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 3, MAX_RANKS = 4, ALL = MAX_RANKS * COUNT, UNTOUCHED = -777 };

/* ---- forms ---- */

enum form {
    SEPARATE,
    IN_ONE,        /* inout t */
    OUTPUT_FIRST,  /* out y, in x */
    WINDOW,        /* a window beside x and y */
    WINDOWS,       /* x and y are windows */
    SCRATCH,       /* an output that the contract does not name */
    SCALAR,        /* an int that has a default */
    COUNTS,        /* counts: int[nranks] */
    SCALAR_MISSES, /* an int that has none: from here on, calls have nothing for it */
    INPUT_MISSES,  /* a second input */
    LOCAL_MISSES,  /* local c: int */
    FORMS
};

static const char *const form_names[FORMS] = {
    "separate", "in one buffer", "outputs first", "extra window", "windows",     "extra output",
    "scalar",   "counts",        "scalar misses", "input misses", "local counts"};

/* A collective's algorithm, everything sent directly. $x is read, $y is written; $X, $Y are their
 * shapes. In one buffer, $x and $y are t or its own part. `one` is what then is left out. */
struct algorithm {
    enum kind kind;
    const char *x_shape, *y_shape;
    const char *x_in_one, *y_in_one;
    const char *first; /* y's own part, if x and y are apart */
    const char *body;
    bool reduces, has_root;
};

static const struct algorithm algorithms[] = {
    {BARRIER, "", "", "", "", "",
     "signal s[nranks]\n"
     "for p in peers { notify s[rank]@p += 1 }\n"
     "for p in peers { wait s[p] >= 1 }\n",
     false, false},
    {ALLREDUCE, "n", "n", "t", "t", "",
     "let acc = $x\n"
     "for s in 1 .. nranks {\n"
     "send $x to (rank + s) % nranks\n"
     "let got: T[n] = recv from (rank - s) % nranks\n"
     "acc = op(acc, got)\n}\n"
     "$y = final(op, acc)\n",
     true, false},
    {REDUCE, "n", "n", "t", "t", "",
     "if rank == root {\n"
     "let acc = $x\n"
     "for p in peers {\nlet got: T[n] = recv from p\nacc = op(acc, got)\n}\n"
     "$y = final(op, acc)\n"
     "} else {\nsend $x to root\n}\n",
     true, true},
    {BROADCAST, "n", "n", "t", "t", "if rank == root { $y = $x }\n",
     "if rank == root {\nfor p in peers { send $x to p }\n} else {\n$y = recv from root\n}\n",
     false, true},
    {ALLGATHER, "part(rank, n, nranks)", "n", "t[rank of nranks]", "t", "$y[rank of nranks] = $x\n",
     "for p in peers { send $x to p }\n"
     "for p in peers { $y[p of nranks] = recv from p }\n",
     false, false},
    {REDUCE_SCATTER, "n", "part(rank, n, nranks)", "t", "t[rank of nranks]", "",
     "for p in peers { send $x[p of nranks] to p }\n"
     "let acc = $x[rank of nranks]\n"
     "for p in peers {\nlet got: T[part(rank, n, nranks)] = recv from p\nacc = op(acc, got)\n}\n"
     "$y = final(op, acc)\n",
     true, false},
    {GATHER, "part(rank, n, nranks)", "n", "t[rank of nranks]", "t",
     "if rank == root { $y[rank of nranks] = $x }\n",
     "if rank == root {\nfor p in peers { $y[p of nranks] = recv from p }\n"
     "} else {\nsend $x to root\n}\n",
     false, true},
    {SCATTER, "n", "part(rank, n, nranks)", "t", "t[rank of nranks]",
     "if rank == root { $y = $x[rank of nranks] }\n",
     "if rank == root {\nfor p in peers { send $x[p of nranks] to p }\n"
     "} else {\n$y = recv from root\n}\n",
     false, true},
    {SCAN, "n", "n", "t", "t", "",
     "for p in rank + 1 .. nranks { send $x to p }\n"
     "let acc = $x\n"
     "for q in 0 .. rank {\nlet got: T[n] = recv from q\nacc = op(acc, got)\n}\n"
     "$y = acc\n",
     true, false},
    {EXSCAN, "n", "n", "t", "t", "",
     "for p in rank + 1 .. nranks { send $x to p }\n"
     "if rank > 0 {\n"
     "let acc: T[n] = recv from 0\n"
     "for q in 1 .. rank {\nlet got: T[n] = recv from q\nacc = op(acc, got)\n}\n"
     "$y = acc\n}\n",
     true, false},
    {ALL_TO_ALL, "n", "nranks * part(rank, n, nranks)", "t", "t",
     "$y[rank of nranks] = $x[rank of nranks]\n",
     "for p in peers { send $x[p of nranks] to p }\n"
     "for p in peers { $y[p of nranks] = recv from p }\n",
     false, false},
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };

struct words {
    char at[4096];
    size_t len;
};

static void put(struct words *out, const char *text, const char *x, const char *y)
{
    for (; *text; text++) {
        char one[2] = {*text, '\0'};
        const char *piece = one;
        if (text[0] == '$')
            piece = *++text == 'x' ? x : y;
        out->len += (size_t)snprintf(out->at + out->len, sizeof out->at - out->len, "%s", piece);
    }
    EXPECT(out->len < sizeof out->at);
}

/* A window has the same size on all ranks. */
static const char *window_shape(const char *shape)
{
    if (shape[0] == 'p')
        return "cdiv(n, nranks)";
    return strstr(shape, "part") ? "nranks * cdiv(n, nranks)" : shape;
}

/* x and y as a form declares them. */
static void put_sides(struct words *out, const struct algorithm *a, enum form form)
{
    char text[512];
    if (form == IN_ONE)
        snprintf(text, sizeof text, "inout t: T[n]");
    else if (form == COUNTS && a->x_shape[0] == 'p')
        snprintf(text, sizeof text, "in x: T[counts[rank]], out y: T[n], counts: int[nranks]");
    else if (form == COUNTS && a->y_shape[0] == 'p')
        snprintf(text, sizeof text, "in x: T[n], out y: T[counts[rank]], counts: int[nranks]");
    else if (form == OUTPUT_FIRST)
        snprintf(text, sizeof text, "out y: T[%s], in x: T[%s]", a->y_shape, a->x_shape);
    else if (form == WINDOWS)
        snprintf(text, sizeof text, "in x: window T[%s], out y: window T[%s]",
                 window_shape(a->x_shape), window_shape(a->y_shape));
    else
        snprintf(text, sizeof text, "in x: T[%s], out y: T[%s]", a->x_shape, a->y_shape);
    put(out, text, "", "");
}

static void write_kernel(const struct algorithm *a, enum form form, struct words *out)
{
    static const char *const more[FORMS] = {
        [WINDOW] = ", inout w: window T[", [SCRATCH] = ", out w: T[",
        [SCALAR] = ", k: int = 2",         [SCALAR_MISSES] = ", k: int",
        [INPUT_MISSES] = ", in w: T[n]",   [LOCAL_MISSES] = ", local c: int"};
    bool one = form == IN_ONE, through = form == WINDOW || form == SCRATCH;
    const char *x = "x", *y = "y";
    if (one) {
        x = a->x_in_one;
        y = a->y_in_one;
    }
    out->len = 0;
    put(out, "kernel own(", "", "");
    bool has_data = a->kind != BARRIER;
    if (has_data)
        put_sides(out, a, form);
    if (more[form])
        put(out, more[form] + (has_data ? 0 : 2), "", "");
    if (through) {
        put(out, form == WINDOW ? window_shape(a->x_shape) : a->x_shape, "", "");
        put(out, "]", "", "");
    }
    if (a->reduces)
        put(out, ", op: reduce", "", "");
    if (a->has_root)
        put(out, ", root: int", "", "");
    put(out, ") implements ", "", "");
    put(out, kind_name(a->kind), "", "");
    put(out, " {\n", "", "");
    if (through) { /* what the contract reads goes through the memory that it does not name */
        put(out, "w = x\n", "", "");
        x = "w";
    }
    if (!one)
        put(out, a->first, x, y);
    put(out, a->body, x, y);
    if (form == INPUT_MISSES) /* parameters are used */
        put(out, "let unused = w\n", "", "");
    put(out, "}\n", "", "");
}

/* ---- calls and what they promise ---- */

static int32_t input(uint32_t rank, uint32_t i)
{
    return (int32_t)(100 * (rank + 1) + i);
}

/* Element i of the output on a rank, or UNTOUCHED. */
static int32_t promised(const struct algorithm *a, uint32_t size, uint32_t rank, uint32_t root,
                        uint32_t i)
{
    int32_t sum = 0;
    uint32_t upto = size;
    switch (a->kind) {
    case SCAN:
        upto = rank + 1;
        break;
    case EXSCAN:
        if (rank == 0)
            return UNTOUCHED;
        upto = rank;
        break;
    case REDUCE_SCATTER:
        i += rank * COUNT;
        break;
    case REDUCE:
        if (rank != root)
            return UNTOUCHED;
        break;
    case GATHER:
        return rank == root ? input(i / COUNT, i % COUNT) : UNTOUCHED;
    case ALLGATHER:
        return input(i / COUNT, i % COUNT);
    case BROADCAST:
        return input(root, i);
    case SCATTER:
        return input(root, rank * COUNT + i);
    case ALL_TO_ALL:
        return input(i / COUNT, rank * COUNT + i % COUNT);
    default:
        break;
    }
    for (uint32_t r = 0; r < upto; r++)
        sum += input(r, i);
    return sum;
}

/* How many elements this side has on a rank that has it. */
static uint32_t side(const char *shape, uint32_t size, const struct algorithm *a)
{
    bool parts = a->x_shape[0] == 'p' || a->y_shape[0] == 'p' || a->kind == ALL_TO_ALL;
    return shape[0] == 'p' || !parts ? COUNT : size * COUNT;
}

static bool call_is_right(struct peal_comm *comm, const struct algorithm *a, bool in_place,
                          uint32_t root)
{
    if (a->kind == BARRIER)
        return peal_barrier(comm) == PEAL_OK;
    int32_t x[ALL], y[ALL], all[ALL];
    uint32_t rank = peal_comm_rank(comm), size = peal_comm_size(comm);
    uint32_t nx = side(a->x_shape, size, a), ny = side(a->y_shape, size, a);
    bool has_y = (a->kind != REDUCE && a->kind != GATHER) || rank == root;
    bool has_x = a->kind != SCATTER || rank == root;
    int32_t *send = x, *recv = y;
    if (in_place || a->kind == BROADCAST) {
        send = recv = all;
        if (a->kind == ALLGATHER || a->kind == GATHER)
            send += rank * COUNT;
        if (a->kind == REDUCE_SCATTER || a->kind == SCATTER)
            recv += rank * COUNT;
        if (!has_y || !has_x) { /* in place is the root's alone */
            send = x;
            recv = y;
        }
    }
    for (uint32_t i = 0; i < ALL; i++)
        y[i] = all[i] = UNTOUCHED;
    for (uint32_t i = 0; i < nx; i++)
        send[i] = input(rank, i);
    struct any_call call = {.kind = a->kind,
                            .send = has_x ? send : NULL,
                            .recv = has_y ? recv : NULL,
                            .count = COUNT,
                            .dtype = PEAL_I32,
                            .op = PEAL_SUM,
                            .root = root};
    if (any_call_make(comm, &call) != PEAL_OK) {
        fprintf(stderr, "%s\n", peal_comm_error(comm));
        return false;
    }
    for (uint32_t i = 0; i < ny; i++) {
        int32_t want = promised(a, size, rank, root, i);
        if (want == UNTOUCHED && send == recv)
            want = input(rank, i);
        if (recv[i] != want) {
            fprintf(stderr, "rank %u of %u, element %u: %d, not %d\n", rank, size, i, recv[i],
                    want);
            return false;
        }
    }
    for (uint32_t i = 0; i < nx; i++) { /* the input is the caller's */
        bool own = recv != y || a->kind == BROADCAST;
        if (!own && send[i] != input(rank, i)) {
            fprintf(stderr, "rank %u: the input has changed\n", rank);
            return false;
        }
    }
    return true;
}

static bool calls_are_right(struct peal_comm *comm, const struct algorithm *a)
{
    uint32_t last = peal_comm_size(comm) - 1;
    bool good = true;
    for (int turn = 0; turn < 2; turn++) /* launches follow each other */
        good = good && call_is_right(comm, a, false, 0) && call_is_right(comm, a, false, last);
    if (a->kind != ALL_TO_ALL)
        good = good && call_is_right(comm, a, true, 0) && call_is_right(comm, a, true, last);
    return good;
}

/* ---- ways to name it ---- */

enum way { BY_CALL, BY_ENVIRONMENT, BY_MACHINE, WAYS };

/* One cell of the matrix, as ranks get it. */
struct cell {
    const struct algorithm *algorithm;
    enum form form;
    enum way way;
    char kernel[64], machine[64], folder[32];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    EXPECT(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

/* Settings that are read when a communicator is opened. */
static void set_up(const struct cell *cell, bool modelled)
{
    char text[512];
    unsetenv("PEAL_ALGO");
    setenv("PEAL_PLATFORM", "native", 1);
    if (modelled) {
        snprintf(text, sizeof text, "sim:%s", cell->machine);
        setenv("PEAL_PLATFORM", text, 1);
    }
    snprintf(text, sizeof text, "%s=%s", kind_name(cell->algorithm->kind), cell->kernel);
    if (cell->way == BY_ENVIRONMENT)
        setenv("PEAL_ALGO", text, 1);
}

/* With a communicator that is open: names the kernel, if that is the way, and calls. */
static int use(struct peal_comm *comm, const void *context)
{
    const struct cell *cell = context;
    const char *name = kind_name(cell->algorithm->kind);
    if (cell->way == BY_CALL) {
        enum peal_status status = peal_comm_set_algo(comm, name, cell->kernel);
        if (cell->form >= SCALAR_MISSES)
            return status == PEAL_INVALID && strstr(peal_comm_error(comm), "nothing in a call") ? 0
                                                                                                : 1;
        if (status != PEAL_OK)
            fprintf(stderr, "%s\n", peal_comm_error(comm));
        if (status != PEAL_OK)
            return 1;
    }
    if (cell->form >= SCALAR_MISSES)
        return 1; /* it should not have been opened */
    return calls_are_right(comm, cell->algorithm) ? 0 : 1;
}

static const struct cell *thread_cell;

static void *use_in_thread(void *comm)
{
    EXPECT(use(comm, thread_cell) == 0);
    return NULL;
}

/* What is refused when a communicator is opened: one rank shows it. */
static bool is_refused(void)
{
    struct peal_comm *comm = NULL;
    enum peal_status status = peal_comm_open_threads(1, &comm);
    if (status == PEAL_OK)
        peal_comm_close(comm);
    bool told = strstr(peal_comm_error(NULL), "nothing in a call") != NULL;
    if (status != PEAL_INVALID || !told)
        fprintf(stderr, "%s: %s\n", peal_status_text(status), peal_comm_error(NULL));
    return status == PEAL_INVALID && told;
}

static bool run_cell(const struct cell *cell, const char *mode, uint32_t ranks)
{
    bool modelled = strcmp(mode, "machine") == 0;
    set_up(cell, modelled);
    if (cell->form >= SCALAR_MISSES && cell->way != BY_CALL)
        return is_refused();
    if (strcmp(mode, "processes") == 0)
        return children_run(ranks, use, cell);
    thread_cell = cell;
    threads_run(ranks, use_in_thread);
    return true;
}

static void write_files(struct cell *cell, char *folder)
{
    struct words text;
    char machine[1024];
    write_kernel(cell->algorithm, cell->form, &text);
    snprintf(cell->kernel, sizeof cell->kernel, "%s/own.peal", folder);
    snprintf(cell->machine, sizeof cell->machine, "%s/m.yaml", folder);
    write_file(cell->kernel, text.at);
    snprintf(machine, sizeof machine,
             "topology: {flat: 8}\n"
             "links: {flat: {bw_GBps: 10, lat_ns: 50}}\n"
             "ipcq: {slots: 4, slot_bytes: 65536}\n"
             "dma: {bw_GBps: 10}\n"
             "credit: {mode: fast, bytes: 0}\n"
             "mem: {tcm: {bw_GBps: .inf}}\n"
             "math: {clock_GHz: 1, lanes: {f32: 1}}\n"
             "ccl: {algorithm: %s}\n",
             cell->way == BY_MACHINE ? "own.peal" : "ring");
    write_file(cell->machine, machine);
}

static bool has_form(const struct algorithm *a, enum form form)
{
    bool uneven = a->x_shape[0] == 'p' || a->y_shape[0] == 'p';
    if (form == COUNTS)
        return uneven;
    return a->kind != BARRIER || form == SEPARATE || form == SCALAR || form == SCALAR_MISSES ||
           form == LOCAL_MISSES;
}

static void write_kernels(const char *folder)
{
    for (int i = 0; i < ALGORITHMS * FORMS; i++) {
        const struct algorithm *a = &algorithms[i / FORMS];
        enum form form = (enum form)(i % FORMS);
        struct words text;
        char path[512];
        if (!has_form(a, form))
            continue;
        write_kernel(a, form, &text);
        int len = snprintf(path, sizeof path, "%s/%s-%s%d.peal", folder, kind_name(a->kind),
                           form >= SCALAR_MISSES ? "misses" : "form", (int)form);
        EXPECT(len > 0 && len < (int)sizeof path);
        write_file(path, text.at);
    }
}

/* ---- the text counts, not its path ---- */

static char same_text[2][64];
static bool differ;

static void *use_copy(void *comm)
{
    int32_t x = 1, y = 0;
    uint32_t rank = peal_comm_rank(comm);
    EXPECT(peal_comm_set_algo(comm, "allreduce", same_text[rank]) == PEAL_OK);
    enum peal_status status = peal_allreduce(comm, &x, &y, 1, PEAL_I32, PEAL_SUM);
    EXPECT(differ ? status == PEAL_MISMATCH : status == PEAL_OK && y == 2);
    return NULL;
}

/* Two ranks have a kernel at different places: it is one kernel if its text is. */
static void compare_texts(const char *folder)
{
    struct words text;
    set_up(&(struct cell){.algorithm = &algorithms[1], .way = BY_CALL}, false);
    for (int round = 0; round < 2; round++) {
        differ = round == 1;
        for (int i = 0; i < 2; i++) {
            write_kernel(&algorithms[1], differ && i ? OUTPUT_FIRST : SEPARATE, &text);
            snprintf(same_text[i], sizeof same_text[i], "%s/%d.peal", folder, i);
            write_file(same_text[i], text.at);
        }
        threads_run(2, use_copy);
    }
    EXPECT(unlink(same_text[0]) == 0 && unlink(same_text[1]) == 0);
}

/* ---- an average is divided ---- */

static void *use_average(void *comm)
{
    float x = 3, y = 0;
    EXPECT(peal_comm_set_algo(comm, "allreduce", same_text[0]) == PEAL_OK);
    EXPECT(peal_allreduce(comm, &x, &y, 1, PEAL_F32, PEAL_SUM) == PEAL_OK && y == 6);
    enum peal_status status = peal_allreduce(comm, &x, &y, 1, PEAL_F32, PEAL_AVG);
    EXPECT(differ ? status == PEAL_UNSUPPORTED && y == 6 : status == PEAL_OK && y == 3);
    EXPECT(!differ || strstr(peal_comm_error(comm), "final(op, ...)"));
    return NULL;
}

/* A kernel that never applies final(op, ...) gives sums: calls with avg are refused. */
static void refuse_sums(const char *folder)
{
    static const char body[] = "kernel k(inout t: T[n], op: reduce) implements allreduce {\n"
                               "    send t to 1 - rank\n"
                               "    t = op(t, recv from 1 - rank)\n";
    char text[256];
    snprintf(same_text[0], sizeof same_text[0], "%s/sums.peal", folder);
    for (int round = 0; round < 4; round++) {
        differ = round % 2 == 1;
        snprintf(text, sizeof text, "%s%s}\n", body, differ ? "" : "    t = final(op, t)\n");
        write_file(same_text[0], text);
        setenv("PEAL_PLATFORM", round < 2 ? "native" : "sim:cube", 1);
        threads_run(2, use_average);
    }
    setenv("PEAL_PLATFORM", "native", 1);
    EXPECT(unlink(same_text[0]) == 0);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/peal-own-XXXXXX", path[64];
    EXPECT(argc == 3);
    if (strcmp(argv[1], "kernels") == 0) {
        write_kernels(argv[2]);
        return 0;
    }
    EXPECT(mkdtemp(folder));
    const char *mode = argv[1];
    bool all = strcmp(argv[2], "all") == 0;
    int failed = 0, cells = 0;
    setenv("PEAL_TUNE_FILE", "/dev/null", 1);
    for (int i = 0; i < ALGORITHMS * FORMS * WAYS; i++) {
        struct cell cell = {.algorithm = &algorithms[i / WAYS / FORMS],
                            .form = (enum form)(i / WAYS % FORMS),
                            .way = (enum way)(i % WAYS)};
        bool modelled = strcmp(mode, "machine") == 0;
        if ((cell.way == BY_MACHINE) != modelled && (cell.way == BY_MACHINE || !all))
            continue;
        if (!has_form(cell.algorithm, cell.form))
            continue;
        if (!all && !modelled && (i / WAYS) % 2 != (int)cell.way)
            continue; /* every form of every collective, one way each */
        write_files(&cell, folder);
        for (uint32_t ranks = all ? 2 : 3; ranks <= (all ? 4u : 3u); ranks++) {
            cells++;
            if (run_cell(&cell, mode, ranks))
                continue;
            fprintf(stderr, "%s, %s, way %d, %s, %u ranks: not so\n",
                    kind_name(cell.algorithm->kind), form_names[cell.form], (int)cell.way, mode,
                    ranks);
            failed++;
        }
    }
    if (strcmp(mode, "threads") == 0)
        compare_texts(folder);
    if (strcmp(mode, "threads") == 0)
        refuse_sums(folder);
    snprintf(path, sizeof path, "%s/own.peal", folder);
    EXPECT(unlink(path) == 0);
    snprintf(path, sizeof path, "%s/m.yaml", folder);
    EXPECT(unlink(path) == 0 && rmdir(folder) == 0);
    printf("%d of %d right or refused\n", cells - failed, cells);
    return failed != 0;
}
