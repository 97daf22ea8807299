/* SPDX-License-Identifier: Apache-2.0 */
/* See process.h. */
#include "cli/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_MS = 5000 };

/* A file of /proc/PID, without its last line end. False: it cannot be read. */
static bool read_proc(int32_t pid, const char *name, char *out, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t got = fread(out, 1, cap - 1, file);
    fclose(file);
    out[got] = '\0';
    if (got > 0 && out[got - 1] == '\n')
        out[got - 1] = '\0';
    return got > 0;
}

/* The letter of its state, and its parent. A program's name may contain blanks and brackets. */
static bool read_stat(int32_t pid, char *state, int32_t *parent)
{
    char line[512];
    if (!read_proc(pid, "stat", line, sizeof line))
        return false;
    const char *after = strrchr(line, ')');
    return after && sscanf(after + 1, " %c %d", state, parent) == 2;
}

int32_t peal_process_parent(int32_t pid)
{
    char state;
    int32_t parent = 0;
    if (read_stat(pid, &state, &parent))
        return parent;
    return 0;
}

static const char *state_text(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "asleep";
    case 'D':
        return "in the kernel, waiting for a device or for memory";
    case 'T':
        return "stopped by a signal";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "ended";
    default:
        return "in an unknown state";
    }
}

bool peal_process_state(int32_t pid, struct peal_text *out)
{
    char state, where[64];
    int32_t parent;
    if (!read_stat(pid, &state, &parent))
        return false;
    peal_text_puts(out, state_text(state));
    /* The kernel function in which it sleeps; "0" if the system does not say. */
    bool sleeps = state == 'S' || state == 'D';
    if (sleeps && read_proc(pid, "wchan", where, sizeof where) && strcmp(where, "0") != 0)
        peal_text_printf(out, " in %s", where);
    return true;
}

/* ---- stacks ---- */

/* Lines of eu-stack are "#2  0x00007f12 peal_barrier". */
static uint32_t take_names(const char *text, uint32_t max_names, struct peal_text *out)
{
    uint32_t found = 0;
    const char *line = text;
    while (line && *line && found < max_names) {
        int name = 0;
        if (sscanf(line, "#%*d %*s %n", &name) == 0 && name > 0) {
            const char *end = line + strcspn(line, "\n");
            while (end > line + name && end[-1] == ' ')
                end--;
            peal_text_printf(out, "%.*s\n", (int)(end - line - name), line + name);
            found++;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return found;
}

bool peal_process_stack(int32_t pid, uint32_t max_names, struct peal_text *out)
{
    char number[16];
    struct peal_text text = {0};
    snprintf(number, sizeof number, "%d", pid);
    const char *const argv[] = {"eu-stack", "-1", "-p", number, NULL};
    const struct peal_child child = {.argv = argv, .input = -1, .limit_ms = STACK_MS};
    bool found = peal_child_output(&child, &text) != PEAL_SYSTEM &&
                 take_names(peal_text_get(&text), max_names, out) > 0;
    peal_text_release(&text);
    return found;
}
