/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of measured choices, as peal/choose.h has them: given to a communicator, read and written.
 *
 * A rule of the runtime points to its algorithm, a public one names it; this is the only place where
 * one becomes the other. A table is written beside the old one and moved over it, so that ranks that
 * open meanwhile read a whole one. */
#include "comm/choice/from_file.h"
#include "comm/core/growth.h"

#include <peal/choose.h>

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(sizeof(struct peal_tuned) == PEAL_TUNED_FIRST_BYTES, "0.2.0 has this size");

enum { LONGEST_PATH = 4096 };

static bool read_rule(const struct peal_tuned *from, struct peal_rule *out)
{
    if (!from->collective || !from->algo || from->segment == 0)
        return false;
    if (from->ranks == 0 || from->ranks > PEAL_MOST_RANKS || from->hosts > from->ranks)
        return false;
    uint32_t collective = peal_collective_named(from->collective);
    const struct peal_algo *algo = peal_algo_find(collective, from->algo);
    *out = (struct peal_rule){.collective = (uint8_t)collective,
                              .symmetric = from->symmetric != 0,
                              .hosts = (uint16_t)from->hosts,
                              .ranks = (uint16_t)from->ranks,
                              .bytes = from->bytes,
                              .algo = algo,
                              .segment = from->segment};
    return algo != NULL;
}

enum peal_status peal_comm_set_tuning(struct peal_comm *comm, const struct peal_tuned *rules,
                                      size_t count)
{
    enum peal_status status = peal_comm_check(comm);
    if (status != PEAL_OK)
        return status;
    if (count > 0 && !rules)
        return peal_comm_fail(comm, PEAL_INVALID, "there are no rules");
    void *made;
    const struct peal_tuned *view =
        peal_growth_view(rules, count, PEAL_TUNED_FIRST_BYTES, sizeof *rules, &made);
    struct peal_rule *copies = calloc(count + 1, sizeof *copies);
    if (!copies) {
        status = peal_comm_fail(comm, PEAL_NO_MEMORY, "no memory for rules");
        goto release;
    }
    if (count > 0 && !view) {
        status = peal_comm_fail(comm, PEAL_INVALID,
                                "the rules' struct_size is too small, or they set members that "
                                "this library does not know");
        goto release;
    }
    for (size_t i = 0; i < count; i++) {
        if (read_rule(&view[i], &copies[i]))
            continue;
        status =
            peal_comm_fail(comm, PEAL_INVALID, "rule %zu names something that does not exist", i);
        goto release;
    }
    peal_rules_release(&comm->rules);
    comm->rules.rules = copies;
    comm->rules.count = count;
    copies = NULL;
    peal_comm_forget(comm);
release:
    free(copies);
    free(made);
    return status;
}

enum peal_status peal_tuning_path(char *out, size_t cap)
{
    if (out && peal_tune_path(out, cap))
        return PEAL_OK;
    return PEAL_INVALID;
}

void peal_tuning_read(const char *path, void (*each)(void *context, const struct peal_tuned *rule),
                      void *context)
{
    struct peal_table_of_rules table;
    peal_rules_load(path, &table);
    for (size_t i = 0; i < table.count; i++) {
        const struct peal_rule *rule = &table.rules[i];
        struct peal_tuned given = {.struct_size = sizeof given,
                                   .ranks = rule->ranks,
                                   .symmetric = rule->symmetric,
                                   .hosts = rule->hosts,
                                   .collective = peal_collective_name(rule->collective),
                                   .algo = rule->algo->name,
                                   .bytes = rule->bytes,
                                   .segment = rule->segment};
        each(context, &given);
    }
    peal_rules_release(&table);
}

/* ---- writing ---- */

/* Makes the folders of a path. One that cannot be made is noticed when the file is opened. */
static void make_folders(const char *path)
{
    char copy[LONGEST_PATH];
    if ((size_t)snprintf(copy, sizeof copy, "%s", path) >= sizeof copy)
        return;
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(copy, 0777);
        *slash = '/';
    }
}

/* Where the new table is made, beside the old one. NULL: errno says why. */
static FILE *open_fresh(const char *path, char fresh[static LONGEST_PATH])
{
    if (!path || !path[0]) {
        errno = EINVAL;
        return NULL;
    }
    make_folders(path);
    if (snprintf(fresh, LONGEST_PATH, "%s.%d", path, (int)getpid()) >= LONGEST_PATH) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    return fopen(fresh, "we");
}

enum peal_status peal_tuning_check(const char *path)
{
    char fresh[LONGEST_PATH];
    struct stat there;
    if (path && stat(path, &there) == 0 && S_ISDIR(there.st_mode)) {
        errno = EISDIR;
        return PEAL_SYSTEM;
    }
    FILE *file = open_fresh(path, fresh);
    if (!file)
        return PEAL_SYSTEM;
    fclose(file);
    (void)remove(fresh);
    return PEAL_OK;
}

/* The line that read_rule of run/algorithms/select.c reads. */
static void write_rule(FILE *file, const struct peal_tuned *rule)
{
    char memory[24] = "private";
    if (rule->symmetric)
        snprintf(memory, sizeof memory, "symmetric");
    if (rule->hosts)
        snprintf(memory, sizeof memory, "hosts:%u", rule->hosts);
    fprintf(file, "%s %s %u %llu %s %llu\n", rule->collective, memory, rule->ranks,
            (unsigned long long)rule->bytes, rule->algo, (unsigned long long)rule->segment);
}

enum peal_status peal_tuning_write(const char *path, const struct peal_tuned *rules, size_t count)
{
    char fresh[LONGEST_PATH];
    void *made;
    const struct peal_tuned *view =
        peal_growth_view(rules, count, PEAL_TUNED_FIRST_BYTES, sizeof *rules, &made);
    if (count > 0 && !view) {
        errno = EINVAL;
        return PEAL_SYSTEM;
    }
    FILE *file = open_fresh(path, fresh);
    if (!file)
        goto free_view;
    fputs("# by 'peal tune': collective, memory, ranks, bytes up to, algorithm, segment\n", file);
    for (size_t i = 0; i < count; i++)
        write_rule(file, &view[i]);
    bool bad = ferror(file) != 0;
    bad |= fclose(file) != 0;
    if (!bad && rename(fresh, path) == 0) {
        free(made);
        return PEAL_OK;
    }
    int why = errno;
    (void)remove(fresh);
    errno = why;
free_view:
    free(made);
    return PEAL_SYSTEM;
}
