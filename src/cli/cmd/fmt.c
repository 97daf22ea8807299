/* SPDX-License-Identifier: Apache-2.0 */
/* peal fmt: texts in one layout. */
#include "cli/cli.h"
#include "cli/museum/museum.h"
#include "lang/lang.h"

#include <errno.h>
#include <string.h>

struct fmt_options {
    bool check;
};

static const struct peal_option options_table[] = {
    {"check", 0, PEAL_OPTION_FLAG, offsetof(struct fmt_options, check), NULL,
     "change nothing; name the files that would change, and exit with 1", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct fmt_options defaults = {0};

/* Only a text that can be read is formatted. False after a message. */
static int check_text(struct peal_cli *cli, const struct peal_source *source)
{
    struct peal_diags diags;
    struct peal_module *module = NULL;
    int code = PEAL_EXIT_OK;
    peal_diags_init(&diags);
    enum peal_status status = peal_parse(source, &diags, &module);
    if (status != PEAL_OK)
        code = peal_cli_diags(cli, status, &diags);
    if (status == PEAL_INVALID)
        code = PEAL_EXIT_NO;
    peal_module_free(module);
    peal_diags_release(&diags);
    return code;
}

static int format_file(struct peal_cli *cli, const struct fmt_options *o, const char *path)
{
    struct peal_source source;
    struct peal_text out = {0};
    bool from_stdin = strcmp(path, "-") == 0;
    if (!peal_cli_read(cli, path, &source))
        return PEAL_EXIT_OTHER;
    int code = check_text(cli, &source);
    if (code != PEAL_EXIT_OK)
        return code;
    peal_format(&source, &out);
    bool same = out.len == source.len && memcmp(peal_text_get(&out), source.text, out.len) == 0;
    if (out.failed) {
        code = peal_cli_fail(cli, "out of memory");
    } else if (o->check) {
        code = same ? PEAL_EXIT_OK : PEAL_EXIT_NO;
        if (!same)
            peal_cli_note(cli, "'%s' is not formatted", source.name);
    } else if (!same && peal_museum_instead_of(path)) {
        code = peal_cli_fail(cli, "'%s' is part of this command and cannot be changed", path);
    } else if (from_stdin) {
        return peal_cli_print(cli, &out, PEAL_EXIT_OK);
    } else if (!same && !peal_cli_replace(path, peal_text_get(&out), out.len, NULL)) {
        code = peal_cli_fail(cli, "could not write '%s': %s", path, strerror(errno));
    }
    peal_text_release(&out);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    int worst = PEAL_EXIT_OK;
    for (int i = 0; i < nargs; i++) {
        int code = format_file(cli, options, args[i]);
        if (code > worst)
            worst = code;
    }
    return worst;
}

const struct peal_command peal_cmd_fmt = {
    .name = "fmt",
    .args = "FILE.peal...",
    .summary = "lay out texts in one way, comments included",
    .details =
        "Files are changed in place; '-' is standard input, which is written to standard output. "
        "Indentation and the space between tokens change, and where a line begins with '{' or "
        "'else'. Comments, line ends and tokens stay, so a text keeps its meaning. A text that "
        "cannot be read is left as it is.\n\n"
        "Exit code: 0 done, or nothing to do with --check; 1 a text is wrong, or --check names a "
        "file; 3 a file cannot be read or written.\n\n"
        "  peal fmt my.peal\n"
        "  peal fmt --check kernels/*.peal\n"
        "  peal fmt - < my.peal",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct fmt_options),
    .min_args = 1,
    .max_args = -1,
    .run = run,
};
