/* SPDX-License-Identifier: Apache-2.0 */
/* Library kernels in the simulator: times are those of the oracle, data is what contracts demand.
 */
#include "oracle.h"
#include "sim_cases.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kernels[] = {
    "allreduce_small",     "allreduce_central",   "allreduce_mesh",        "allreduce_mesh2",
    "allreduce_ring",      "allreduce_ring_slot", "allreduce_biring",      "allreduce_doubling",
    "allreduce_halving",   "allreduce_forward",   "allreduce_chunked",     "allreduce_tree",
    "allreduce_mesh2d",    "allreduce_direct",    "allreduce_peer",        "allgather_pull",
    "allgather_push",      "allgather_ring",      "allgather_direct",      "allgather_peer",
    "reduce_scatter_mesh", "reduce_scatter_ring", "reduce_scatter_direct", "reduce_scatter_peer",
    "broadcast_flat",      "broadcast_pipe",      "broadcast_binomial",    "broadcast_chain",
    "broadcast_direct",    "broadcast_peer",      "reduce_mesh",           "reduce_binomial",
    "reduce_direct",       "reduce_peer",         "gather_flat",           "gather_direct",
    "gather_peer",         "scatter_flat",        "scatter_direct",        "scatter_peer",
    "all_to_all_pull",     "all_to_all_push",     "all_to_all_pairwise",   "all_to_all_direct",
    "all_to_all_peer",     "barrier_mesh",        "barrier_central",       "barrier_dissemination",
    "barrier_direct",      "allreduce_read",      "allgather_read",        "reduce_scatter_read",
    "broadcast_read",      "broadcast_share",     "all_to_all_read",
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

/* Every kernel that the oracle can decide (no contention) takes exactly its time. The last two
 * numbers of ranks only in the long form. */
static void contention_free_kernels_equal_the_oracle(void **state)
{
    static const uint32_t ranks[] = {2, 3, 4, 5, 7, 8, 13, 16, 32, 64};
    size_t nranks = sizeof ranks / sizeof *ranks - (*state ? 0 : 2);
    struct peal_machine *machine = case_machine("exact.yaml", NULL);
    uint32_t decided = 0, wrong = 0, kernels_decided = 0;
    for (size_t k = 0; k < KERNELS; k++) {
        uint32_t before = decided;
        for (size_t i = 0; i < nranks; i++) {
            struct peal_plan *plan = case_plan_try(&(struct case_plan){.kernel = kernels[k],
                                                                       .nranks = ranks[i],
                                                                       .count = 4 * ranks[i],
                                                                       .depth = 64,
                                                                       .dtype = PEAL_F32});
            if (!plan)
                continue;
            uint64_t want = oracle_time(plan, (struct oracle_costs){50000, 100, 1000});
            if (want != UINT64_MAX) {
                uint64_t is = case_run(plan, machine, NULL, 1).time;
                decided++;
                if (is != want && wrong++ < 10)
                    printf("%s, %u ranks: %llu ps, the oracle says %llu\n", kernels[k], ranks[i],
                           (unsigned long long)is, (unsigned long long)want);
            }
            free(plan);
        }
        kernels_decided += decided > before;
    }
    peal_machine_free(machine);
    printf("%u plans of %u kernels decided by the oracle\n", decided, kernels_decided);
    assert_int_equal(wrong, 0);
    assert_true(kernels_decided >= 8);
}

/* Strict and run-ahead simulation give the same times, with all components on. (If two messages
 * reach a link at the same instant, either may go first.) */
static void running_ahead_changes_nothing(void **unused)
{
    (void)unused;
    struct peal_machine *machine = case_machine(
        "exact.yaml", "pe.issue_ps=700 dma.setup_ps=3000 dma.bw_GBps=20 mem.tcm.bw_GBps=50 "
                      "mem.tcm.lat_ns=2 credit.bytes=16 signal.notify_bytes=16 "
                      "signal.request_bytes=16 ipcq.wake_ps=900 dma.queue=2");
    for (size_t k = 0; k < KERNELS; k++) {
        struct peal_plan *plan = case_plan_try(&(struct case_plan){
            .kernel = kernels[k], .nranks = 6, .count = 600, .depth = 1, .dtype = PEAL_F32});
        if (!plan)
            continue;
        struct case_run fast = case_run(plan, machine, NULL, 2);
        struct case_run strict =
            case_run(plan, machine, &(struct peal_sim_options){.strict = true}, 2);
        struct case_run logged =
            case_run(plan, machine, &(struct peal_sim_options){.log = true}, 2);
        if (fast.time != strict.time || fast.stats.hash != logged.stats.hash)
            fail_msg("%s: %llu and %llu ps", kernels[k], (unsigned long long)fast.time,
                     (unsigned long long)strict.time);
        free(plan);
    }
    peal_machine_free(machine);
}

/* Each kernel on each machine file, with data; twice in a row if it does not overwrite its input.
 */
static void every_kernel_on_every_machine_keeps_its_contract(void **unused)
{
    (void)unused;
    static const struct {
        const char *file, *settings;
        uint32_t ranks;
    } machines[] = {
        {"exact.yaml", NULL, 5},
        {"cube.yaml", NULL, 4},
        {"mesh4x4.yaml", NULL, 16},
        {"system2x4x16.yaml", NULL, 24},
        {"flat64.yaml", NULL, 9},
        {"torus8x8.yaml", NULL, 10},
        {"large4096.yaml", NULL, 12},
        {"a100x8.yaml", NULL, 8},
        {"h100x8.yaml", NULL, 8},
        {"h100x32.yaml", NULL, 12},
        {"nvl72.yaml", NULL, 9},
        {"mi300x8.yaml", NULL, 8},
        {"mi300x16.yaml", NULL, 16},
        {"dgx1.yaml", NULL, 8},
        {"torus4x4x4.yaml", NULL, 8},
        {"ascend910bx8.yaml", NULL, 8},
        {"ascend910bx8-less1.yaml", NULL, 8},
        {"fattree256.yaml", NULL, 17},
        {"mesh4x4.yaml", "ipcq.backpressure=poll", 7},
        {"mesh4x4.yaml", "place.param=hbm place.window=sram place.private=hbm ipcq.space=sram", 8},
        {"system2x4x16.yaml", "pe.math_async=true pe.recv_async=true", 8},
        {"mesh4x4.yaml", "credit.mode=fabric dma.arb=priority links.mode=fluid", 6},
        {"mesh4x4.yaml", "pe.send_async=false links.mode=store-and-forward", 6},
    };
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        struct peal_machine *machine = case_machine(machines[m].file, machines[m].settings);
        for (size_t k = 0; k < KERNELS; k++) {
            struct peal_plan *plan = case_plan_try(&(struct case_plan){.kernel = kernels[k],
                                                                       .nranks = machines[m].ranks,
                                                                       .count = 97,
                                                                       .depth = 2,
                                                                       .root = 1,
                                                                       .dtype = PEAL_F32});
            if (!plan)
                continue;
            uint32_t launches = plan->contract_in == plan->contract_out ? 1 : 2;
            case_check(plan, machine, &(struct peal_sim_options){.data = PEAL_SIM_DATA_FULL},
                       launches);
            if (m < 3)
                case_check(plan, machine, &(struct peal_sim_options){.data = PEAL_SIM_DATA_SAMPLED},
                           1);
            free(plan);
        }
        peal_machine_free(machine);
    }
}

/* The ring in three memories and on 8, 16 and 256 ranks, the mesh on 4 and 16, the tree on 7 and
 * 15; 1, 2 and 4 slots; polling and sleeping. On 256 ranks all of these take half a minute, so they
 * run only if the state is not NULL. */
static void the_matrix_of_algorithms_memories_and_sizes(void **state)
{
    bool whole_matrix = *state != NULL;
    static const struct {
        const char *kernel;
        uint32_t ranks;
        const char *settings;
    } rows[] = {
        {"allreduce_chunked", 8, "ipcq.space=tcm place.param=tcm place.private=tcm"},
        {"allreduce_chunked", 8, "ipcq.space=sram place.param=sram place.private=sram"},
        {"allreduce_chunked", 8, "ipcq.space=hbm place.param=hbm place.private=hbm"},
        {"allreduce_forward", 8, "ipcq.space=hbm place.param=hbm place.tile=sram"},
        {"allreduce_chunked", 16, ""},
        {"allreduce_chunked", 256, "topology.pes=[16,16]"},
        {"allreduce_forward", 256, "topology.pes=[16,16]"},
        {"allreduce_mesh2d", 4, "ccl.embed=row_major"},
        {"allreduce_mesh2d", 16, "ccl.embed=row_major"},
        {"allreduce_tree", 7, "ccl.embed=tree"},
        {"allreduce_tree", 15, "ccl.embed=tree"},
        {"hello_send", 16, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool few = rows[i].ranks > 16 && !whole_matrix;
        for (uint32_t slots = few ? 4 : 1; slots <= 4; slots *= 2) {
            for (int poll = few; poll < 2; poll++) {
                char settings[256];
                snprintf(settings, sizeof settings, "%s ipcq.backpressure=%s", rows[i].settings,
                         poll ? "poll" : "sleep");
                struct peal_machine *machine = case_machine("mesh4x4.yaml", settings);
                struct peal_plan *plan =
                    case_plan_make(&(struct case_plan){.kernel = rows[i].kernel,
                                                       .nranks = rows[i].ranks,
                                                       .count = 300,
                                                       .depth = slots,
                                                       .dtype = PEAL_F32});
                case_check(plan, machine, &(struct peal_sim_options){.data = PEAL_SIM_DATA_FULL},
                           1);
                free(plan);
                peal_machine_free(machine);
            }
        }
    }
}

static void a_forwarding_ring_with_late_credit_and_one_slot_deadlocks(void **unused)
{
    (void)unused;
    struct peal_machine *machine = case_machine("exact.yaml", NULL);
    for (uint32_t p = 2; p <= 6; p++) {
        for (uint32_t depth = 1; depth <= 2; depth++) {
            struct peal_plan *plan = case_plan_make(&(struct case_plan){.text = case_late_credit,
                                                                        .nranks = p,
                                                                        .count = 8,
                                                                        .depth = depth,
                                                                        .dtype = PEAL_F32});
            struct peal_sim *sim = case_sim(plan, machine, NULL, NULL, 1);
            struct peal_text text = {0};
            const struct peal_sim_deadlock *d = peal_sim_deadlock(sim);
            assert_int_equal(d != NULL, depth == 1 && p >= 3);
            if (d) {
                assert_int_equal(d->cycle, p);
                assert_int_equal(d->blocked, p);
                assert_true(d->lanes[0].full);
                peal_sim_deadlock_print(sim, &text);
                assert_non_null(strstr(peal_text_get(&text), "case.peal:6:"));
                peal_text_release(&text);
            }
            peal_sim_free(sim);
            free(plan);
        }
    }
    peal_machine_free(machine);
}

/* The critical path has no gaps. */
static void the_critical_path_covers_the_run(void **unused)
{
    (void)unused;
    struct peal_machine *machine = case_machine("torus8x8.yaml", NULL);
    for (size_t k = 0; k < KERNELS; k++) {
        struct peal_plan *plan = case_plan_try(&(struct case_plan){
            .kernel = kernels[k], .nranks = 8, .count = 512, .depth = 2, .dtype = PEAL_F32});
        struct peal_sim_step *steps;
        uint64_t count;
        if (!plan)
            continue;
        struct peal_sim *sim =
            case_sim(plan, machine, &(struct peal_sim_options){.log = true}, NULL, 1);
        assert_int_equal(peal_sim_path(sim, &steps, &count), PEAL_OK);
        uint64_t at = 0;
        for (uint64_t i = 0; i < count; i++) {
            assert_int_equal(steps[i].from, at);
            at = steps[i].to;
        }
        assert_int_equal(at, peal_sim_stats(sim)->time);
        free(steps);
        peal_sim_free(sim);
        free(plan);
    }
    peal_machine_free(machine);
}

/* No link is busy longer than the run, links serve one message at a time, slots are never exceeded,
 * and times are in order. */
static void invariants_hold(void **unused)
{
    (void)unused;
    struct peal_machine *machine = case_machine("mesh4x4.yaml", "ipcq.slots=2");
    for (size_t k = 0; k < KERNELS; k++) {
        struct peal_plan *plan = case_plan_try(&(struct case_plan){
            .kernel = kernels[k], .nranks = 16, .count = 999, .depth = 2, .dtype = PEAL_F32});
        struct peal_sim_log log;
        if (!plan)
            continue;
        struct peal_sim *sim =
            case_sim(plan, machine, &(struct peal_sim_options){.log = true}, NULL, 1);
        uint64_t time = peal_sim_stats(sim)->time, busy_end[2048] = {0};
        for (uint32_t i = 0; i < peal_sim_link_count(sim); i++) {
            struct peal_sim_link_stats link;
            peal_sim_link(sim, i, &link);
            assert_true(link.busy <= time);
        }
        assert_true(peal_sim_stats(sim)->slots_used <= 2);
        peal_sim_log(sim, &log);
        for (uint64_t i = 0; i < log.nbars; i++) {
            const struct peal_sim_bar *bar = &log.bars[i];
            if (bar->track != PEAL_TRACK_LINK)
                continue;
            assert_true(bar->start >= busy_end[bar->id]);
            busy_end[bar->id] = bar->end;
        }
        for (uint64_t i = 0; i < log.nops; i++) {
            assert_true(log.ops[i].start <= log.ops[i].ready && log.ops[i].ready <= log.ops[i].end);
            assert_true(log.ops[i].end <= time);
        }
        for (uint64_t i = 0; i < log.nmessages; i++)
            assert_true(log.messages[i].delivered >= log.messages[i].sent);
        peal_sim_free(sim);
        free(plan);
    }
    peal_machine_free(machine);
}

/* The host reads and writes data between launches, and simulated time goes on. */
static void the_host_uses_data_between_launches(void **unused)
{
    (void)unused;
    struct peal_machine *machine = case_machine("cube.yaml", NULL);
    struct peal_plan *plan = case_plan_make(&(struct case_plan){
        .kernel = "allreduce_forward", .nranks = 4, .count = 4, .depth = 2, .dtype = PEAL_F32});
    float x[4][4], y[4][4];
    void *buffers[8];
    struct peal_diags diags;
    struct peal_sim *sim;
    uint64_t before = 0;
    for (int r = 0; r < 4; r++) {
        buffers[2 * r] = x[r];
        buffers[2 * r + 1] = y[r];
    }
    peal_diags_init(&diags);
    assert_int_equal(peal_sim_new(machine, 4,
                                  &(struct peal_sim_options){.data = PEAL_SIM_DATA_FULL}, &diags,
                                  &sim),
                     PEAL_OK);
    for (int launch = 0; launch < 3; launch++) {
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 4; i++)
                x[r][i] = (float)(100 * launch + 10 * r + i);
        assert_int_equal(
            peal_sim_launch(sim, plan, &(struct peal_sim_args){.buffers = buffers}, &diags),
            PEAL_OK);
        assert_int_equal(peal_sim_run(sim), PEAL_OK);
        assert_int_equal(peal_sim_sync(sim), PEAL_OK);
        for (int r = 0; r < 4; r++)
            for (int i = 0; i < 4; i++)
                assert_true(y[r][i] == (float)(400 * launch + 60 + 4 * i));
        assert_true(peal_sim_stats(sim)->time > before);
        before = peal_sim_stats(sim)->time;
    }
    peal_sim_free(sim);
    free(plan);
    peal_machine_free(machine);
    peal_diags_release(&diags);
}

/* With --matrix: the whole matrix, the oracle at all numbers of ranks, and nothing else. */
int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--matrix") == 0) {
        const struct CMUnitTest matrix[] = {
            cmocka_unit_test_prestate(the_matrix_of_algorithms_memories_and_sizes, argv[1]),
            cmocka_unit_test_prestate(contention_free_kernels_equal_the_oracle, argv[1])};
        return cmocka_run_group_tests(matrix, NULL, NULL);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contention_free_kernels_equal_the_oracle),
        cmocka_unit_test(running_ahead_changes_nothing),
        cmocka_unit_test(every_kernel_on_every_machine_keeps_its_contract),
        cmocka_unit_test(the_matrix_of_algorithms_memories_and_sizes),
        cmocka_unit_test(a_forwarding_ring_with_late_credit_and_one_slot_deadlocks),
        cmocka_unit_test(the_critical_path_covers_the_run),
        cmocka_unit_test(invariants_hold),
        cmocka_unit_test(the_host_uses_data_between_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
