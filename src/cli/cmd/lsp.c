/* SPDX-License-Identifier: Apache-2.0 */
/* peal lsp: the language server on standard input and output. */
#include "cli/cli.h"
#include "lsp/lsp.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct lsp_options {
    int64_t limit;
    bool no_proofs, ignored;
};

static const struct peal_option options_table[] = {
    {"no-proofs", 0, PEAL_OPTION_FLAG, offsetof(struct lsp_options, no_proofs), NULL,
     "prove nothing in the background, and run no commands", 0, 0},
    {"limit", 0, PEAL_OPTION_INT, offsetof(struct lsp_options, limit), "S",
     "seconds for a verdict; a fix has twice as long, a lens six times (default 10)", 1, 3600},
    {"stdio", 0, PEAL_OPTION_FLAG, offsetof(struct lsp_options, ignored), NULL,
     "ignored: some editors add it", 0, 0},
    {NULL, 0, PEAL_OPTION_FLAG, 0, NULL, NULL, 0, 0},
};

static const struct lsp_options defaults = {0};

/* The client, as a file. */
struct client {
    int in, out;
    bool gone;
};

static void write_to_client(void *context, const char *bytes, size_t len)
{
    struct client *client = context;
    while (len && !client->gone) {
        ssize_t n = write(client->out, bytes, len);
        if (n < 0 && errno == EINTR)
            continue;
        client->gone = n <= 0;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
}

static bool has_input(int in)
{
    struct pollfd now = {.fd = in, .events = POLLIN};
    return poll(&now, 1, 0) > 0;
}

/* Everything that has come, so that diagnostics are made once for several changes. */
static void read_client(struct client *client, struct peal_lsp *server)
{
    static char bytes[1 << 16];
    do {
        ssize_t n = read(client->in, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR)
            continue;
        client->gone = client->gone || n <= 0;
        if (n > 0)
            peal_lsp_feed(server, bytes, (size_t)n);
    } while (!client->gone && has_input(client->in));
}

static int serve(struct client *client, struct peal_lsp *server)
{
    int code = PEAL_EXIT_NO;
    while (!client->gone && !peal_lsp_has_ended(server, &code)) {
        int wait = peal_lsp_idle(server);
        struct pollfd files[] = {{.fd = client->in, .events = POLLIN},
                                 {.fd = peal_lsp_job_file(server), .events = POLLIN}};
        if (client->gone || (poll(files, 2, wait) < 0 && errno != EINTR))
            break;
        if (files[0].revents)
            read_client(client, server);
    }
    (void)peal_lsp_has_ended(server, &code);
    return code;
}

static int run(struct peal_cli *cli, const void *options, char **args, int nargs)
{
    (void)args, (void)nargs;
    const struct lsp_options *o = options;
    struct client client = {.in = STDIN_FILENO};
    char folder[PEAL_CLI_FOLDER], program[4096];
    if (isatty(STDIN_FILENO))
        peal_cli_note(cli,
                      "this is for editors, and waits for their messages; see docs/editors.md");
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    program[len > 0 ? len : 0] = '\0';
    if (!peal_cli_folder_open(cli, folder))
        return PEAL_EXIT_OTHER;
    /* What anything prints by mistake must not reach the client. */
    fflush(stdout);
    client.out = dup(STDOUT_FILENO);
    if (client.out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return peal_cli_fail(cli, "the system has no files left");
    signal(SIGPIPE, SIG_IGN);
    struct peal_lsp_options server_options = {.write = write_to_client,
                                              .context = &client,
                                              .folder = folder,
                                              .limit_s = (uint32_t)o->limit};
    if (!o->no_proofs && len > 0)
        server_options.program = program;
    struct peal_lsp *server = peal_lsp_new(&server_options);
    int code = PEAL_EXIT_OTHER;
    if (server)
        code = serve(&client, server);
    else
        peal_cli_fail(cli, "out of memory");
    peal_lsp_free(server);
    close(client.out);
    return code;
}

const struct peal_command peal_cmd_lsp = {
    .name = "lsp",
    .args = "",
    .summary = "serve an editor: the language server",
    .details =
        "Speaks LSP 3.17 on standard input and output; an editor starts it. Errors as you type, "
        "meanings, definitions, references, rename, completion, layout, hints, fixes that were "
        "verified, and beside every kernel its verdict at 2..4 ranks, found in the background with "
        "limits of time and memory. docs/editors.md sets up VS Code, Vim, Neovim, Emacs and "
        "Helix.\n\n"
        "Exit code: 0 the editor ended it as the protocol says, otherwise 1.",
    .options = options_table,
    .defaults = &defaults,
    .size = sizeof(struct lsp_options),
    .min_args = 0,
    .max_args = 0,
    .run = run,
};
