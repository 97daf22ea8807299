/* SPDX-License-Identifier: Apache-2.0 */
/* See python.h. */
#include "cli/import/python.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SECONDS = 120, MAX_NAME = 4096, MAX_RECORDINGS = 4096 };
#define MAX_MEMORY (UINT64_C(8) << 30)
#define MAX_FILE (UINT64_C(2) << 30)

static bool ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);
    return len > n && strcmp(text + len - n, end) == 0;
}

bool peal_python_names_file(const char *argument)
{
    if (ends_in(argument, ".py"))
        return true;
    if (!ends_in(argument, ".yaml") && !ends_in(argument, ".yml"))
        return false;
    FILE *file = fopen(argument, "r");
    char line[256];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file))
        found = strncmp(line, "algorithms:", 11) == 0;
    if (file)
        fclose(file);
    return found;
}

static void list_numbers(const struct peal_ints *numbers, struct peal_text *out)
{
    for (size_t i = 0; i < numbers->len; i++)
        peal_text_printf(out, "%s%" PRId64, i ? "," : "", numbers->at[i]);
}

static void limit(int resource, uint64_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && (now.rlim_max == RLIM_INFINITY || now.rlim_max > most))
        (void)setrlimit(resource, &(struct rlimit){most, most});
}

/* In the child. The limits contain mistakes, not attackers. */
static void become(char **args, int output)
{
    limit(RLIMIT_CPU, MAX_SECONDS);
    limit(RLIMIT_AS, MAX_MEMORY);
    limit(RLIMIT_FSIZE, MAX_FILE);
    limit(RLIMIT_CORE, 0);
    alarm(5 * MAX_SECONDS);
    dup2(output, STDOUT_FILENO);
    close(output);
    setenv("PYTHONDONTWRITEBYTECODE", "1", 1);
    execvp(args[0], args);
    fprintf(stderr, "peal: cannot run '%s': %s\n", args[0], strerror(errno));
    _exit(127);
}

/* Takes names of recordings, one per line; the kernel may print something too. */
static void take_names(struct peal_python_recordings *out, int input)
{
    FILE *file = fdopen(input, "r");
    char line[MAX_NAME];
    out->paths = calloc(MAX_RECORDINGS, sizeof *out->paths);
    while (file && out->paths && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        size_t prefix = strlen(out->folder);
        if (strncmp(line, out->folder, prefix) != 0 || line[prefix] != '/')
            fprintf(stderr, "%s\n", line);
        else if (out->npaths < MAX_RECORDINGS)
            out->paths[out->npaths++] = strdup(line);
    }
    if (file)
        fclose(file);
}

static bool write_script(const char *path, int number)
{
    FILE *file = fopen(path, "wx");
    const struct peal_source *text = &peal_python_texts[number];
    bool ok = file && fwrite(text->text, 1, text->len, file) == text->len;
    if (file && fclose(file) != 0)
        ok = false;
    return ok;
}

static const char *python_name(void)
{
    const char *given = getenv("PEAL_PYTHON");
    return given ? given : "python3";
}

static bool wait_for(const struct peal_cli *cli, pid_t child, const char *path)
{
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (WIFSIGNALED(status) &&
        (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGALRM))
        fprintf(stderr, "peal %s: '%s' was not recorded within %d seconds\n", cli->command->name,
                path, MAX_SECONDS);
    else
        fprintf(stderr, "peal %s: '%s' was not recorded\n", cli->command->name, path);
    return false;
}

bool peal_python_record(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, const char *fallback,
                        struct peal_python_recordings *out)
{
    *out = (struct peal_python_recordings){0};
    struct peal_text script = {0}, ranks = {0}, counts = {0};
    int ends[2] = {-1, -1};
    bool ok = false;
    if (!peal_cli_folder_open(cli, out->folder))
        return false;
    peal_text_printf(&script, "%s/record.py", out->folder);
    list_numbers(&options->ranks, &ranks);
    list_numbers(&options->counts, &counts);
    const char *args[] = {python_name(),
                          peal_text_get(&script),
                          path,
                          "--ranks",
                          peal_text_get(&ranks),
                          "--fallback",
                          fallback,
                          "--counts",
                          peal_text_get(&counts),
                          "--dtype",
                          peal_dtype_name(options->dtype),
                          "--op",
                          peal_reduce_name(options->op.reduce),
                          "--folder",
                          out->folder,
                          NULL};
    if (write_script(peal_text_get(&script), 0) && pipe(ends) == 0) {
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            become((char **)(uintptr_t)args, ends[1]);
        }
        close(ends[1]);
        take_names(out, ends[0]);
        ok = child > 0 && wait_for(cli, child, path) && out->npaths > 0;
    }
    peal_text_release(&script);
    peal_text_release(&ranks);
    peal_text_release(&counts);
    return ok;
}

void peal_python_release(struct peal_python_recordings *recordings)
{
    for (int i = 0; i < recordings->npaths; i++)
        free(recordings->paths[i]);
    free(recordings->paths);
    peal_cli_folder_remove(recordings->folder);
    *recordings = (struct peal_python_recordings){0};
}

int peal_python_run(const char *folder, int number, const char *const *args)
{
    char script[4096];
    const char *words[3 + 4096] = {python_name(), script};
    size_t n = 2;
    int status = 0;
    snprintf(script, sizeof script, "%s/script.py", folder);
    for (; *args && n + 1 < sizeof words / sizeof *words; args++)
        words[n++] = *args;
    if (*args || !write_script(script, number))
        return PEAL_EXIT_OTHER;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execvp(words[0], (char **)(uintptr_t)words);
        fprintf(stderr, "peal: cannot run '%s': %s\n", words[0], strerror(errno));
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    unlink(script);
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : PEAL_EXIT_OTHER;
}
