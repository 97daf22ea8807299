/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over files and kernels that the programs of this folder share. */
#include "conformance/each.h"

#include "lang/lang.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_why(struct peal_text *text)
{
    for (const char *line = peal_text_get(text); *line;) {
        size_t len = strcspn(line, "\n");
        printf("# %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    peal_text_release(text);
}

static struct answer check_kernel(struct peal_program *program, const char *name, bool full,
                                  kernel_check *check)
{
    struct peal_diags diags;
    peal_diags_init(&diags);
    struct answer answer = {.good = false};
    const struct peal_kernel *kernel = peal_program_kernel(program, name, &diags);
    if (kernel)
        answer = check(kernel, full);
    else
        peal_diags_print(&diags, false, &answer.why);
    peal_diags_release(&diags);
    return answer;
}

static void print_answer(struct answer *answer, int number, const char *name, const char *unit)
{
    printf("%s %d - %s", answer->good ? "ok" : "not ok", number, name);
    if (unit)
        printf(" (%" PRIu64 " %s)", answer->count, unit);
    printf("\n");
    print_why(&answer->why);
    fflush(stdout);
}

int each_kernel(char **files, bool full, const char *unit, kernel_check *check)
{
    int number = 0, failed = 0;
    for (; *files; files++) {
        struct peal_diags diags;
        struct peal_program *program = NULL;
        peal_diags_init(&diags);
        bool read = peal_program_open(*files, &diags, &program) == PEAL_OK;
        if (!read) {
            struct answer answer = {.good = false};
            peal_diags_print(&diags, false, &answer.why);
            print_answer(&answer, ++number, *files, NULL);
            failed++;
        }
        const struct peal_kernel *k = read ? peal_program_module(program)->kernels : NULL;
        for (; k; k = k->next) {
            struct answer answer = check_kernel(program, k->name, full, check);
            if (answer.skipped)
                continue;
            print_answer(&answer, ++number, k->name, unit);
            failed += !answer.good;
        }
        peal_program_close(program);
        peal_diags_release(&diags);
    }
    printf("1..%d\n", number);
    return failed != 0;
}

int each_kernel_main(int argc, char **argv, const char *unit, kernel_check *check)
{
    if (argc < 3 || (strcmp(argv[1], "quick") != 0 && strcmp(argv[1], "full") != 0)) {
        fprintf(stderr, "usage: %s quick|full FILE.peal...\n", argv[0]);
        return 2;
    }
    return each_kernel(argv + 2, strcmp(argv[1], "full") == 0, unit, check);
}
