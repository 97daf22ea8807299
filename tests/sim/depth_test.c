/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier's least depth of channels is the smallest one at which a simulation ends. */
#include "sim_cases.h"

#include "verify/verify.h"
#include "base/tests/unit.h"

#include <stdio.h>
#include <stdlib.h>

/* Sends three messages before it receives: needs three slots. */
static const char eager[] = "kernel eager(in x: T[n], out y: T[n]) {\n"
                            "    for s in 0 .. 3 { send x to (rank + 1) % nranks }\n"
                            "    for s in 0 .. 3 { y = recv from (rank - 1) % nranks }\n"
                            "}\n";

static uint32_t simulated_depth(const struct case_plan *spec, const struct peal_machine *machine)
{
    for (uint32_t depth = 1; depth <= 8; depth++) {
        struct case_plan at = *spec;
        at.depth = depth;
        struct peal_plan *plan = case_plan_make(&at);
        bool ends = !case_run(plan, machine, NULL, 2).deadlock;
        free(plan);
        if (ends)
            return depth;
    }
    return 0;
}

TEST(verifier_and_simulator_find_the_same_least_depth)
{
    static const struct {
        int line;
        const char *text, *kernel;
        uint32_t from, to;
    } rows[] = {
        {__LINE__, case_late_credit, NULL, 2, 5},
        {__LINE__, eager, NULL, 2, 3},
        {__LINE__, NULL, "allreduce_forward", 2, 4},
        {__LINE__, NULL, "allreduce_tree", 3, 7},
    };
    struct peal_machine *machine = case_machine("exact.yaml", NULL);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (uint32_t p = rows[i].from; p <= rows[i].to; p++) {
            struct case_plan spec = {.text = rows[i].text,
                                     .kernel = rows[i].kernel,
                                     .nranks = p,
                                     .count = 8,
                                     .depth = 8,
                                     .dtype = PEAL_F32};
            struct peal_plan *plan = case_plan_make(&spec);
            struct peal_verification *v = NULL;
            assert_int_equal(peal_verify_plan(plan, &(struct peal_verify_options){0}, &v), PEAL_OK);
            uint32_t simulated = simulated_depth(&spec, machine);
            if (v->least_depth != simulated)
                fail_msg("line %d, %u ranks: the verifier says %u, the simulator %u", rows[i].line,
                         p, v->least_depth, simulated);
            peal_verification_free(v);
            free(plan);
        }
    }
    peal_machine_free(machine);
}

int main(void)
{
    return unit_run();
}
