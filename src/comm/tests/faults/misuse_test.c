/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of programs, and lacks of systems: each gives the status that peal.h promises, and a text.
 */
#include "comm/tests/children.h"
#include "base/tests/unit.h"

#include <peal/plan.h>
#include <peal/verify.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(uint32_t ranks, children_body *body)
{
    assert_true(children_run(ranks, body, NULL));
}

static int launch_nothing(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char text[] = "kernel k(in x: T[n], out y: T[n]) {\n    y = x\n}\n";
    struct peal_user_kernel *kernel;
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER}, {.kind = PEAL_ARG_BUFFER}};
    EXPECT(peal_user_kernel_load(comm, text, NULL, &kernel) == PEAL_OK);
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, NULL, 2, NULL, 0) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "arguments"));
    EXPECT(peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 1) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "dimensions"));
    peal_user_kernel_free(kernel);
    return 0;
}

/* Short texts that ask for much work: refused with numbers, or done in time proportional to the
 * work. */
static enum peal_status load_and_launch(struct peal_comm *comm, const char *text)
{
    static float x[64], y[64];
    struct peal_user_kernel *kernel;
    struct peal_arg args[2] = {{.kind = PEAL_ARG_BUFFER, .data = x, .bytes = sizeof x},
                               {.kind = PEAL_ARG_BUFFER, .data = y, .bytes = sizeof y}};
    enum peal_status status = peal_user_kernel_load(comm, text, NULL, &kernel);
    if (status != PEAL_OK)
        return status;
    status = peal_user_kernel_launch(kernel, PEAL_F32, args, 2, NULL, 0);
    peal_user_kernel_free(kernel);
    return status;
}

/* Kernels that each call the preceding one twice. */
static void nest(int levels, char *out, size_t cap)
{
    size_t len = (size_t)snprintf(out, cap, "kernel k0(in x: T[n], out y: T[n]) {\n y = x\n}\n");
    for (int i = 1; i <= levels; i++)
        len += (size_t)snprintf(
            out + len, cap - len,
            "kernel k%d(in x: T[n], out y: T[n]) {\n k%d(x, y)\n k%d(x, y)\n}\n", i, i - 1, i - 1);
}

static int ask_for_much(struct peal_comm *comm, const void *context)
{
    (void)context;
    static const char loop[] = "kernel q(in x: T[n], out y: T[n]) {\n"
                               "    for i in 0 .. %d { y = x }\n}\n";
    char text[8192];
    nest(11, text, sizeof text);
    EXPECT(load_and_launch(comm, text) == PEAL_OK);
    nest(40, text, sizeof text);
    EXPECT(load_and_launch(comm, text) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "more than 4096 calls"));
    snprintf(text, sizeof text, loop, 200000);
    EXPECT(load_and_launch(comm, text) == PEAL_OK);
    snprintf(text, sizeof text, loop, 1000000000);
    EXPECT(load_and_launch(comm, text) != PEAL_OK);
    EXPECT(strstr(peal_comm_error(comm), "more than 2097152 ops"));
    return 0;
}

TEST(short_texts_that_ask_for_much)
{
    run(1, ask_for_much);
}

TEST(arguments_that_are_not_there)
{
    run(1, launch_nothing);
}

/* What a forked child tries; 0: all of it was refused. */
static int act_as_rank(struct peal_comm *comm)
{
    int32_t x = 1, y = 0;
    void *memory;
    struct peal_comm *other;
    struct peal_request *request;
    EXPECT(peal_barrier(comm) == PEAL_INVALID);
    EXPECT(peal_allreduce(comm, &x, &y, 1, PEAL_I32, PEAL_SUM) == PEAL_INVALID);
    EXPECT(strstr(peal_comm_error(comm), "forked"));
    EXPECT(peal_ibarrier(comm, &request) == PEAL_INVALID);
    EXPECT(peal_send(comm, &x, 4, 0, 5) == PEAL_INVALID);
    EXPECT(peal_comm_dup(comm, &other) == PEAL_INVALID);
    EXPECT(peal_comm_shrink(comm, &other) == PEAL_INVALID);
    EXPECT(peal_symmetric_alloc(comm, 4096, &memory) == PEAL_INVALID);
    peal_comm_revoke(comm);
    peal_comm_close(comm);
    return 0;
}

static int fork_a_child(struct peal_comm *comm, const void *context)
{
    (void)context;
    int32_t x = 1, y = 0;
    for (int i = 0; i < 3; i++) /* the child's first call is to be a repetition, too */
        EXPECT(peal_allreduce(comm, &x, &y, 1, PEAL_I32, PEAL_SUM) == PEAL_OK);
    if (peal_comm_rank(comm) == 1) {
        int status = 1;
        pid_t pid = fork();
        if (pid == 0)
            _exit(act_as_rank(comm));
        EXPECT(waitpid(pid, &status, 0) == pid && status == 0);
    }
    EXPECT(peal_allreduce(comm, &x, &y, 1, PEAL_I32, PEAL_SUM) == PEAL_OK);
    EXPECT(y == (int32_t)peal_comm_size(comm));
    return 0;
}

TEST(a_forked_child_is_no_rank)
{
    run(2, fork_a_child);
}

static int take_no_message(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { BYTES = 512 << 20 };
    char byte = 0;
    if (peal_comm_rank(comm) == 0) {
        struct peal_request *request;
        char *data = calloc(1, BYTES);
        EXPECT(data);
        EXPECT(peal_isend(comm, data, BYTES, 1, 5, &request) == PEAL_OK);
        EXPECT(peal_request_wait(request) == PEAL_NO_MEMORY);
        return 0;
    }
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file && fscanf(file, "%ld", &pages) == 1);
    fclose(file);
    struct rlimit limit = {(rlim_t)pages * 4096 + (64 << 20), RLIM_INFINITY};
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    EXPECT(peal_recv(comm, &byte, 1, 0, 6, NULL, NULL) == PEAL_NO_MEMORY);
    EXPECT(strstr(peal_comm_error(comm), "no memory to keep a message"));
    return 0;
}

TEST(a_message_that_cannot_be_kept)
{
    run(2, take_no_message);
}

/* So many that quadratic work would not end in time. */
static int send_many(struct peal_comm *comm, const void *context)
{
    (void)context;
    enum { MANY = 100000 };
    struct peal_request **requests = calloc(MANY, sizeof *requests);
    uint32_t *words = calloc(MANY, sizeof *words), rank = peal_comm_rank(comm);
    EXPECT(requests && words);
    for (uint32_t i = 0; i < MANY; i++) {
        words[i] = i;
        EXPECT((rank == 0
                    ? peal_isend(comm, &words[i], 4, 1, i, &requests[i])
                    : peal_irecv(comm, &words[i], 4, 0, MANY - 1 - i, &requests[i])) == PEAL_OK);
    }
    for (uint32_t i = 0; i < MANY; i++)
        EXPECT(peal_request_wait(requests[i]) == PEAL_OK);
    for (uint32_t i = 0; i < MANY; i++)
        EXPECT(rank == 0 || words[i] == MANY - 1 - i);
    free(requests);
    free(words);
    return 0;
}

TEST(many_messages_at_once)
{
    run(2, send_many);
}

static int only_barrier(struct peal_comm *comm, const void *context)
{
    (void)context;
    EXPECT(peal_barrier(comm) == PEAL_OK);
    return 0;
}

TEST(a_table_that_never_ends)
{
    char folder[] = "/tmp/peal-misuse-XXXXXX", pipe[64];
    assert_non_null(mkdtemp(folder));
    snprintf(pipe, sizeof pipe, "%s/tune", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    const char *const paths[] = {pipe, "/dev/zero", folder};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        setenv("PEAL_TUNE_FILE", paths[i], 1);
        run(2, only_barrier);
    }
    unsetenv("PEAL_TUNE_FILE");
    unlink(pipe);
    rmdir(folder);
}

TEST(nothing_to_prove_or_describe)
{
    struct peal_verdict *verdict = NULL;
    struct peal_plan_facts facts = {0};
    struct peal_plan_buffer buffer = {0};
    struct peal_verify_args args;
    peal_verify_args_init(&args);
    assert_int_equal(peal_verify(NULL, &verdict), PEAL_INVALID);
    assert_null(verdict);
    assert_int_equal(peal_verify(&args, NULL), PEAL_INVALID);
    peal_plan_describe(NULL, &facts);
    assert_int_equal(facts.ranks, 0);
    peal_plan_describe(NULL, NULL);
    assert_int_equal(peal_plan_describe_buffer(NULL, 0, 0, &buffer), PEAL_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(short_texts_that_ask_for_much),
                                       cmocka_unit_test(arguments_that_are_not_there),
                                       cmocka_unit_test(a_forked_child_is_no_rank),
                                       cmocka_unit_test(a_message_that_cannot_be_kept),
                                       cmocka_unit_test(many_messages_at_once),
                                       cmocka_unit_test(a_table_that_never_ends),
                                       cmocka_unit_test(nothing_to_prove_or_describe)};
    return cmocka_run_group_tests_name("misuse", tests, NULL, NULL);
}
