/* SPDX-License-Identifier: Apache-2.0 */
/* SMT solvers as processes: z3 and cvc5, if the search path has them.
 *
 * The script is passed to the solver as an unnamed file, and the answers come back through a pipe.
 * Every answer must be "unsat", and there must be one per obligation; anything else, including a
 * message about the script, counts against the proof. A solver that takes longer than a minute is
 * ended.
 */
#include "verify/ring/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_SECONDS = 60 };

struct solver {
    const char *name;
    const char *argv[4];
};

static const struct solver solvers[RING_SOLVERS] = {
    {"z3", {"z3", "-in", "-smt2", NULL}},
    {"cvc5", {"cvc5", "--lang=smt2", "--incremental", NULL}},
};

const char *peal_ring_solver_name(uint32_t solver)
{
    return solvers[solver].name;
}

/* The script as an open file at its start, or NULL. */
static FILE *make_input(const char *script)
{
    FILE *file = tmpfile();
    if (!file)
        return NULL;
    if (fputs(script, file) == EOF || fflush(file) == EOF ||
        lseek(fileno(file), 0, SEEK_SET) != 0) {
        fclose(file);
        return NULL;
    }
    return file;
}

static bool all_unsat(const char *answers, uint32_t obligations)
{
    static const char word[] = "unsat\n";
    size_t len = sizeof word - 1;
    uint32_t n = 0;
    for (; strncmp(answers, word, len) == 0; answers += len)
        n++;
    return *answers == '\0' && n == obligations;
}

enum ring_answer peal_ring_solve(uint32_t solver, const char *script, uint32_t obligations)
{
    struct peal_text answers = {0};
    enum ring_answer result = RING_ABSENT;
    FILE *input = make_input(script);
    if (!input)
        return RING_ABSENT;
    const struct peal_child child = {
        .argv = solvers[solver].argv, .input = fileno(input), .limit_ms = MAX_SECONDS * 1000};
    enum peal_status status = peal_child_output(&child, &answers);
    if (status != PEAL_SYSTEM)
        result = RING_TIMEOUT;
    if (status == PEAL_OK && !answers.failed)
        result = all_unsat(peal_text_get(&answers), obligations) ? RING_HOLDS : RING_FAILS;
    peal_text_release(&answers);
    fclose(input);
    return result;
}
