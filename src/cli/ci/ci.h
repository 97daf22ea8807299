/* SPDX-License-Identifier: Apache-2.0 */
/* peal ci: what a change of a Git repository could break is proved.
 *
 *   settings.c  peal.yaml: text -> settings; pattern.c: which paths a pattern names
 *   tree.c      the files of a commit, and which of them a change touches, by Git's plumbing
 *   uses.c      which kernels use a file that changed
 *   job.c       one file, verified in a process of its own with a limit of time
 *   report.c    lines for a log, Markdown, SARIF
 *
 * The repository is not trusted: its author may be the one whose change is to be judged. What holds:
 *
 *   - Only what is committed (or staged) is read, by its object's name, never the work tree: a
 *     symbolic link, a device or a file outside cannot be reached.
 *   - Git runs without hooks, filters, file system monitors, external diffs and fetches.
 *   - Files are verified as copies in a private folder that contains no links.
 *   - What has to be compiled or run is, if the settings of the *base* revision name it under `run`.
 *   - Names and texts of the repository are escaped wherever they are shown.
 */
#ifndef PEAL_CLI_CI_CI_H
#define PEAL_CLI_CI_CI_H

#include "cli/cli.h"

/* ---- settings ---- */

struct peal_ci_patterns {
    const char **at;
    size_t len;
};

/* How some files are verified: options of peal verify, as the command line would give them. */
struct peal_ci_entry {
    struct peal_pos pos;
    struct peal_ci_patterns files;
    struct peal_ci_patterns uses; /* other files that the result depends on */
    char **options;               /* "--ranks=2..8", ... */
    int noptions;
    uint64_t time; /* seconds for each kernel; 0 = not given */
};

struct peal_ci_settings {
    struct peal_ci_patterns exclude;
    struct peal_ci_patterns run; /* counts only in the settings of the base revision */
    struct peal_ci_entry usual;  /* for .peal files that no entry names; no `files` */
    PEAL_VEC(struct peal_ci_entry) entries;
};

enum { PEAL_CI_SETTINGS_BYTES = 1 << 16, PEAL_CI_ENTRIES = 4096, PEAL_CI_SECONDS = 60 };

/* Reads peal.yaml. `verify` is the command whose options it may give. PEAL_INVALID: diags say why. Texts
 * live in the arena; release the settings in every case. */
enum peal_status peal_ci_settings_read(const struct peal_source *source,
                                       const struct peal_command *verify, struct peal_arena *arena,
                                       struct peal_diags *diags, struct peal_ci_settings *out);
void peal_ci_settings_release(struct peal_ci_settings *settings);

/* Is the path one of those that the pattern names? `*` and `?` stay within a folder's name, `**` does
 * not; a pattern without a slash is for the last part of a path; one that ends in a slash is for
 * everything below it. */
bool peal_ci_pattern_names(const char *pattern, const char *path);
bool peal_ci_patterns_name(const struct peal_ci_patterns *patterns, const char *path);

/* ---- files ---- */

struct peal_ci_file {
    const char *path;
    const char *object;
    uint64_t bytes;
    const char *text; /* NULL: not read */
    bool is_link;     /* a symbolic link or a submodule: never read */
    bool wanted;      /* is to be read */
    bool affected;    /* by the change; set by the command */
    uint32_t seen;    /* by the search in uses.c */
};

struct peal_ci_tree {
    PEAL_VEC(struct peal_ci_file) files; /* sorted by path */
    PEAL_VEC(const char *) changed;      /* paths that are new, different or gone; sorted */
    const char *root;                    /* the tree that is looked at */
    const char *base;                    /* the commit with which it was compared; NULL: none */
    const char *base_tip; /* the commit whose settings decide what may run; NULL: none */
    bool no_common;       /* they have no common ancestor here: compared directly */
};

enum {
    PEAL_CI_FILE_BYTES = 64 << 20, /* larger files are not verified */
    PEAL_CI_TREE_BYTES = 1 << 30   /* nor are more bytes than that copied */
};

/* What the user asked for. */
struct peal_ci_revisions {
    const char *base; /* or NULL */
    bool
        staged; /* what is staged, instead of HEAD; without a base, compared with HEAD, if there is one */
};

/* Lists the files and what changed. False after a message. Release it in every case. */
bool peal_ci_tree_open(const struct peal_cli *cli, const struct peal_ci_revisions *revisions,
                       struct peal_ci_tree *out);
void peal_ci_tree_release(struct peal_ci_tree *tree);
/* Reads all that are `wanted` and not read yet. False after a message. */
bool peal_ci_tree_read(const struct peal_cli *cli, struct peal_ci_tree *tree);
/* A file of the top folder in a commit. False after a message; a text of NULL: there is none. */
bool peal_ci_commit_file(const struct peal_cli *cli, const char *commit, const char *path,
                         struct peal_source *out);
/* Writes all that were read below the folder. False after a message. */
bool peal_ci_tree_write(const struct peal_cli *cli, const struct peal_ci_tree *tree,
                        const char *folder);
bool peal_ci_changed(const struct peal_ci_tree *tree, const char *path);

/* Does the file, or one that it includes or imports, or one that the entry's `uses` names, differ from the
 * base? Also true of anything in the file's own folder and below. All files are read. */
bool peal_ci_uses_change(struct peal_ci_tree *tree, struct peal_ci_file *file,
                         const struct peal_ci_patterns *uses);

/* ---- verdicts ---- */

/* One kernel, or one file that is no text of kernels. */
struct peal_ci_row {
    const char *path;
    const char *kernel; /* "" for a file as a whole */
    int code;           /* enum peal_exit */
    bool skipped;       /* it would have to be run, and that is not allowed */
    const char *line;   /* what was found, in a line */
    const char *text;   /* the report */
    const char *sarif;  /* results, separated by commas; "" = none */
    uint64_t ms;
};

struct peal_ci_rows {
    PEAL_VEC(struct peal_ci_row) list;
    struct peal_arena *arena;
};

struct peal_ci_job {
    const char *folder; /* with the copies */
    const char *path;   /* below it */
    const struct peal_ci_entry *entry;
    uint64_t seconds; /* for each kernel */
    int64_t threads;
    const struct peal_progress *progress; /* that is open */
    _Atomic int *child; /* the process that runs, or 0: to be ended after Ctrl-C */
};

/* Verifies one file and adds a row for each kernel. False after a message: a process could not be
 * started. */
bool peal_ci_job_run(const struct peal_cli *cli, const struct peal_ci_job *job,
                     struct peal_ci_rows *rows);

struct peal_ci_report {
    const struct peal_ci_rows *rows;
    const struct peal_ci_tree *tree;
    size_t files, affected;
    bool settings_changed;
};

/* Adds text with everything that a terminal, or a service that reads logs, would take as a command made
 * visible. */
void peal_ci_put_safe(const char *text, const char *indent, struct peal_text *out);
void peal_ci_report_row(const struct peal_ci_row *row, struct peal_text *out);
void peal_ci_report_end(const struct peal_ci_report *report, struct peal_text *out);
void peal_ci_report_markdown(const struct peal_ci_report *report, struct peal_text *out);
void peal_ci_report_sarif(const struct peal_ci_report *report, struct peal_text *out);

#endif
