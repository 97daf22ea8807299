/* SPDX-License-Identifier: Apache-2.0 */
/* peal museum: bugs that happened, as kernels, with the verdicts on them. */
#include "cli/museum/museum.h"
#include "cli/progress.h"
#include "cli/verify/verify_kernel.h"
#include "cli/verify/verify_report.h"
#include "lang/lang.h"
#include "verify/verify.h"

#include <stdio.h>
#include <string.h>

struct museum_options {
    const char *html;
};

static const struct peal_option options_table[] = {
    {"html", 0, PEAL_OPTION_STRING, offsetof(struct museum_options, html), "FILE",
     "write the counterexample of the bug as a page (or a picture: FILE.svg)", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct museum_options defaults = {.html = NULL};

enum { ABOUT = 28, MAX_WORDS = 16, MAX_PATH = 128 }; /* ABOUT: the column of the titles */

static const char page_file[] = "/page.md";

/* Is it the page of an exhibit? Then *name is how long its name is. */
static bool is_page(const struct peal_source *text, size_t *name)
{
    size_t len = strlen(text->name), tail = sizeof page_file - 1;
    *name = len - tail;
    return len > tail && strcmp(text->name + *name, page_file) == 0;
}

/* A page's first line, without its mark. */
static void put_title(const struct peal_source *page, struct peal_text *out)
{
    const char *title = page->text + strspn(page->text, "# ");
    peal_text_words(out, title, strcspn(title, "\n"), ABOUT, ABOUT);
}

static int list(struct peal_cli *cli)
{
    struct peal_text out = {0};
    size_t name;
    for (size_t i = 0; i < peal_museum_text_count; i++) {
        const struct peal_source *page = &peal_museum_texts[i];
        if (!is_page(page, &name))
            continue;
        peal_text_printf(&out, "%-*.*s", ABOUT, (int)name, page->name);
        put_title(page, &out);
    }
    return peal_cli_print(cli, &out, PEAL_EXIT_OK);
}

static int reject(struct peal_cli *cli, const char *given)
{
    const char *near = NULL;
    size_t name;
    for (size_t i = 0; i < peal_museum_text_count; i++) {
        if (is_page(&peal_museum_texts[i], &name)) {
            const char *known =
                peal_arena_copy(cli->arena, peal_museum_texts[i].name, name); /* NULL: no memory */
            if (known)
                near = peal_nearer(given, near, known);
        }
    }
    if (near)
        return peal_cli_usage(cli, "there is no '%s' in the museum; did you mean '%s'?", given,
                              near);
    return peal_cli_usage(cli, "there is no '%s' in the museum; 'peal museum' lists them", given);
}

/* What a `case:` line asks of a kernel, and the kernel. */
struct museum_case {
    struct peal_verify_settings settings;
    struct peal_program *program;
    const struct peal_kernel *kernel;
    int argc; /* the words after peal verify */
    char *argv[MAX_WORDS];
};

static bool add_word(struct peal_cli *cli, struct museum_case *c, const char *word, size_t len)
{
    char *copy = peal_arena_copy(cli->arena, word, len);
    if (copy)
        c->argv[c->argc++] = copy;
    else
        peal_cli_fail(cli, "out of memory");
    return copy != NULL;
}

/* `line` is what follows `case:`: options of peal verify, `=>`, a verdict. False after a message;
 * close the program in both cases. */
static bool open_case(struct peal_cli *cli, const char *path, const char *line,
                      struct museum_case *c)
{
    struct peal_args args;
    struct peal_text error = {0};
    const char *end = strstr(line, "=>");
    *c = (struct museum_case){.settings =
                                  *(const struct peal_verify_settings *)peal_cmd_verify.defaults};
    bool good = add_word(cli, c, path, strlen(path)) && add_word(cli, c, "-n", 2) &&
                add_word(cli, c, "2..8", 4);
    for (size_t len; good && end && c->argc < MAX_WORDS; line += len) {
        line += strspn(line, " ");
        len = strcspn(line, " \n");
        if (line >= end)
            break;
        good = add_word(cli, c, line, len);
    }
    if (good && !peal_options_parse(peal_cmd_verify.options, false, c->argc, c->argv, &c->settings,
                                    cli->arena, &args, &error)) {
        good = false;
        peal_cli_fail(cli, "%s: %s", path, peal_text_get(&error));
    }
    peal_text_release(&error);
    struct peal_diags diags;
    peal_diags_init(&diags);
    if (good)
        c->kernel = peal_kernel_open_quietly(cli, path, &c->settings.kernel, &diags, &c->program);
    peal_diags_release(&diags);
    return c->kernel != NULL;
}

/* The command that asks it, and its answer in a few lines. */
static void report(struct peal_cli *cli, const struct museum_case *c,
                   const struct peal_claim *claim, struct peal_text *out)
{
    struct peal_claim_sum sum = peal_claim_add_up(claim);
    const struct peal_claim_task *failure = peal_claim_failure(claim);
    peal_text_puts(out, "\npeal verify");
    for (int i = 0; i < c->argc; i++)
        peal_text_printf(out, " %s", c->argv[i]);
    peal_text_puts(out, "\n");
    peal_verify_report_line(cli->arena, claim, &sum, NULL, out);
    size_t start = out->len;
    if (failure && failure->answer->why)
        peal_text_printf(out, "  %s: %s\n", peal_fault_name(failure->answer->fault),
                         failure->answer->why);
    else
        peal_text_printf(out, "  %s\n", peal_reuse_name(sum.reuse));
    peal_text_printf(out, "  in %.0f ms\n", sum.ms);
    peal_text_fold(out, start, 2, PEAL_TEXT_WIDTH);
}

static bool prove(struct peal_cli *cli, const char *path, const char *line, struct peal_text *out)
{
    struct museum_case c;
    struct peal_claim claim = {0};
    bool good =
        open_case(cli, path, line, &c) && peal_verify_prove(cli, &c.settings, c.kernel, &claim);
    if (good)
        report(cli, &c, &claim, out);
    peal_claim_release(&claim);
    peal_program_close(c.program);
    return good;
}

/* What follows the next `case:` of a text, or NULL. */
static const char *next_case(const char *text)
{
    static const char mark[] = "// case: ";
    const char *at = strstr(text, mark);
    return at ? at + sizeof mark - 1 : NULL;
}

static size_t count_cases(const struct peal_source *text)
{
    size_t n = 0;
    for (const char *at = next_case(text->text); at; at = next_case(at))
        n++;
    return n;
}

/* The verdicts of all cases of a kernel's text. */
static bool prove_all(struct peal_cli *cli, const struct peal_source *text, struct peal_text *out,
                      struct peal_progress *progress)
{
    char path[MAX_PATH];
    bool good = true;
    snprintf(path, sizeof path, "museum/%s", text->name);
    for (const char *at = next_case(text->text); at && good; at = next_case(at)) {
        good = prove(cli, path, at, out);
        peal_progress_step(progress, 1);
    }
    return good;
}

static const struct peal_source *find(const char *name, const char *file)
{
    char path[MAX_PATH];
    snprintf(path, sizeof path, "%s/%s", name, file);
    return peal_museum_find(path);
}

static int show(struct peal_cli *cli, const char *name)
{
    struct peal_text out = {.colors = cli->color};
    const struct peal_source *bug = find(name, "bug.peal"), *fix = find(name, "fix.peal");
    struct peal_progress progress = {.label = "cases",
                                     .total = count_cases(bug) + count_cases(fix)};
    peal_text_puts(&out, find(name, "page.md")->text);
    peal_progress_begin(&progress);
    bool good = prove_all(cli, bug, &out, &progress) && prove_all(cli, fix, &out, &progress);
    peal_progress_end(&progress);
    peal_text_printf(&out,
                     "\npeal museum %s bug               the kernel; also: fix\n"
                     "peal museum %s --html bug.html   the counterexample as a page\n",
                     name, name);
    return peal_cli_print(cli, &out, good ? PEAL_EXIT_OK : PEAL_EXIT_OTHER);
}

/* The page of a bug's last case, which is one that goes wrong. */
static int write_page(struct peal_cli *cli, const char *name, const char *html)
{
    char path[MAX_PATH];
    struct museum_case c;
    const char *last = NULL;
    snprintf(path, sizeof path, "museum/%s/bug.peal", name);
    for (const char *at = next_case(find(name, "bug.peal")->text); at; at = next_case(at))
        last = at;
    int code = PEAL_EXIT_OTHER;
    if (last && open_case(cli, path, last, &c)) {
        c.settings.html = html;
        code = peal_verify_kernel(cli, &c.settings, c.kernel, path, NULL);
    }
    if (last)
        peal_program_close(c.program);
    return code == PEAL_EXIT_NO ? PEAL_EXIT_OK : code; /* refuted, as it should be */
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    const struct museum_options *o = options;
    struct peal_text out = {0};
    char file[MAX_PATH / 4];
    if (o->html && nargs != 1)
        return peal_cli_usage(cli, "--html needs the name of one exhibit, and nothing else");
    if (nargs == 0)
        return list(cli);
    if (strlen(args[0]) > MAX_PATH / 2 || !find(args[0], "page.md"))
        return reject(cli, args[0]);
    if (nargs == 1)
        return o->html ? write_page(cli, args[0], o->html) : show(cli, args[0]);
    if (strcmp(args[1], "bug") != 0 && strcmp(args[1], "fix") != 0)
        return peal_cli_usage(cli, "an exhibit has 'bug' and 'fix', and no '%s'", args[1]);
    snprintf(file, sizeof file, "%s.peal", args[1]);
    peal_text_puts(&out, find(args[0], file)->text);
    return peal_cli_print(cli, &out, PEAL_EXIT_OK);
}

const struct peal_command peal_cmd_museum = {
    .name = "museum",
    .args = "[NAME [bug|fix]]",
    .summary = "bugs that happened, as kernels, with the verdicts on them",
    .details =
        "Without a name: the list. With one: what happened and where, why tests did not see it, "
        "and "
        "what peal verify says of the kernel with the bug and of the fixed one, at 2 to 8 ranks, "
        "proved on the spot. 'bug' or 'fix' prints that kernel's text.\n\n"
        "The kernels are known as museum/NAME/bug.peal and museum/NAME/fix.peal to all commands, "
        "which take such a file instead where there is one.\n\n"
        "  peal museum\n"
        "  peal museum aiter-3515\n"
        "  peal museum aiter-3515 --html bug.html\n"
        "  peal verify museum/aiter-3515/bug.peal -n 2 -c 8",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .max_args = 2,
    .run = run,
};
