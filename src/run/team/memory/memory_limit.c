/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the system's files about memory. One that is missing or not understood sets no limit; the
 * allocation itself may still fail.
 *
 *   /proc/meminfo          MemAvailable
 *   /proc/self/cgroup      the group, as a path in each hierarchy
 *   /proc/self/mountinfo   where the hierarchies are, and which part of them is visible
 *   GROUP/memory.*         a limit and how much of it is used, for the group and all above it
 */
#include "run/team/memory/memory_limit.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATH = 2 * PATH_MAX, ALWAYS_FITS = 1 << 20 };

/* The names of the two versions of control groups. */
static const struct version {
    const char *filesystem;
    const char *limits[2], *used;
    const char *files[2]; /* in memory.stat: pages of files, which the system reclaims first */
} versions[] = {
    {"cgroup2", {"memory.max", "memory.high"}, "memory.current", {"inactive_file", "active_file"}},
    {"cgroup",
     {"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
};

static FILE *open_in(const char *folder, const char *name)
{
    char path[MAX_PATH + 64];
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (len >= (int)sizeof path)
        return NULL;
    return fopen(path, "re");
}

/* The number in a file; UINT64_MAX for "max" and everything else that is not a number. */
static uint64_t read_number(const char *folder, const char *name)
{
    unsigned long long number = UINT64_MAX;
    FILE *file = open_in(folder, name);
    if (!file)
        return UINT64_MAX;
    if (fscanf(file, "%llu", &number) != 1)
        number = UINT64_MAX;
    fclose(file);
    return number;
}

/* The sum of the lines "NAME NUMBER" with these two names. */
static uint64_t read_stat(const char *folder, const char *const names[2])
{
    uint64_t sum = 0;
    char name[64];
    unsigned long long number;
    FILE *file = open_in(folder, "memory.stat");
    if (!file)
        return 0;
    while (fscanf(file, "%63s %llu", name, &number) == 2) {
        if (strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0)
            sum += number;
    }
    fclose(file);
    return sum;
}

static void lower(struct peal_memory_limit *available, uint64_t bytes)
{
    if (bytes >= available->bytes)
        return;
    available->bytes = bytes;
    available->of_group = true;
}

/* Lowers the limit to what one group leaves. Its statistics take the system some time to add up, so
 * they are read only if they decide. */
static void read_group(const struct version *version, const char *folder,
                       struct peal_memory_limit *available)
{
    uint64_t limit = UINT64_MAX;
    for (int i = 0; i < 2 && version->limits[i]; i++) {
        uint64_t found = read_number(folder, version->limits[i]);
        if (found < limit)
            limit = found;
    }
    if (limit >= (uint64_t)INT64_MAX / 2)
        return;
    uint64_t used = read_number(folder, version->used);
    if (used == UINT64_MAX || (used <= limit && limit - used >= available->bytes))
        return;
    uint64_t files = read_stat(folder, version->files);
    used -= peal_size_min(files, used);
    lower(available, used < limit ? limit - used : 0);
}

/* From the group at `path` below the mount point up to the mount point. */
static void climb(const struct version *version, const char *mount, const char *path,
                  struct peal_memory_limit *available)
{
    char folder[MAX_PATH];
    size_t top = strlen(mount);
    int len = snprintf(folder, sizeof folder, "%s%s", mount, path);
    if (len >= (int)sizeof folder)
        return;
    for (;;) {
        read_group(version, folder, available);
        char *slash = strrchr(folder + top, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word)) {
        if ((at == list || at[-1] == ',') && (at[len] == '\0' || at[len] == ','))
            return true;
    }
    return false;
}

/* The path in a line of /proc/self/cgroup, NUMBER:LIST:PATH; NULL: it is of another hierarchy. */
static char *path_in(char *line, const struct version *version)
{
    char *list = strchr(line, ':');
    char *path = NULL;
    if (list)
        path = strchr(list + 1, ':');
    if (!path)
        return NULL;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    bool found = false;
    if (version == &versions[0])
        found = strcmp(list, ":") == 0;
    else
        found = has_word(list + 1, "memory");
    return found ? path : NULL;
}

/* The path of this process's group in the hierarchy of that version. */
static bool find_path(const char *root, const struct version *version, char out[static PATH_MAX])
{
    char line[PATH_MAX + 256];
    const char *path = NULL;
    FILE *file = open_in(root, "proc/self/cgroup");
    if (!file)
        return false;
    while (fgets(line, sizeof line, file)) {
        path = path_in(line, version);
        if (path)
            break;
    }
    fclose(file);
    if (!path)
        return false;
    /* Groups above the root of a namespace cannot be read. */
    bool is_root = strncmp(path, "/..", 3) == 0 || strcmp(path, "/") == 0;
    snprintf(out, PATH_MAX, "%s", is_root ? "" : path);
    return true;
}

/* A line of mountinfo: ID PARENT DEVICE ROOT MOUNT OPTIONS ... - FILESYSTEM SOURCE OPTIONS */
static void read_mount(const char *root, char *line, struct peal_memory_limit *available)
{
    char top[PATH_MAX], at[PATH_MAX], filesystem[32], options[256], path[PATH_MAX];
    char *rest = strstr(line, " - ");
    if (!rest || strncmp(rest, " - cgroup", 9) != 0 ||
        sscanf(line, "%*s %*s %*s %4095s %4095s", top, at) != 2 ||
        sscanf(rest, " - %31s %*s %255s", filesystem, options) != 2)
        return;
    bool second = strcmp(filesystem, versions[0].filesystem) == 0;
    const struct version *version = &versions[second ? 0 : 1];
    if ((!second && !has_word(options, "memory")) || !find_path(root, version, path))
        return;
    /* A container may see only its own group, as the root of the mount. */
    size_t hidden = 0;
    if (strcmp(top, "/") != 0)
        hidden = strlen(top);
    const char *below = "";
    if (strncmp(path, top, hidden) == 0)
        below = path + hidden;
    char mount[MAX_PATH];
    if (snprintf(mount, sizeof mount, "%s%s", root, at) < (int)sizeof mount)
        climb(version, mount, below, available);
}

static void read_groups(const char *root, struct peal_memory_limit *available)
{
    char *line = NULL;
    size_t cap = 0;
    FILE *file = open_in(root, "proc/self/mountinfo");
    if (!file)
        return;
    while (getline(&line, &cap, file) > 0)
        read_mount(root, line, available);
    fclose(file);
    free(line);
}

/* What the machine has; UINT64_MAX: not known. */
static uint64_t read_machine(const char *root)
{
    char line[128];
    unsigned long long kib;
    uint64_t bytes = UINT64_MAX;
    FILE *file = open_in(root, "proc/meminfo");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) {
            bytes = (uint64_t)kib << 10;
            break;
        }
    }
    fclose(file);
    return bytes;
}

void peal_memory_limit_find(const char *root, struct peal_memory_limit *out)
{
    *out = (struct peal_memory_limit){.bytes = read_machine(root)};
    read_groups(root, out);
    if (out->bytes != UINT64_MAX)
        out->bytes -= out->bytes / 16;
}

bool peal_memory_limit_fits(const struct peal_memory_limit *available, uint64_t bytes,
                            uint32_t ranks, struct peal_text *why)
{
    if (bytes < ALWAYS_FITS || bytes <= available->bytes)
        return true;
    if (!why)
        return false;
    const char *where = "on this machine";
    if (available->of_group)
        where = "within the limit of the control group";
    if (ranks > 1)
        peal_text_printf(why, "%u ranks need %llu bytes", ranks, (unsigned long long)bytes);
    else
        peal_text_printf(why, "%llu bytes are needed", (unsigned long long)bytes);
    peal_text_printf(why, ", %llu are available %s", (unsigned long long)available->bytes, where);
    return false;
}

bool peal_memory_limit_has(uint64_t bytes, uint32_t ranks, struct peal_text *why)
{
    struct peal_memory_limit available;
    if (bytes < ALWAYS_FITS)
        return true;
    peal_memory_limit_find("", &available);
    return peal_memory_limit_fits(&available, bytes, ranks, why);
}
