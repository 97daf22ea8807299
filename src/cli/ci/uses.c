/* SPDX-License-Identifier: Apache-2.0 */
/* Does a kernel use a file that changed?
 *
 * Where a compiler or Python would look is not known here, so a name is taken for every file whose path
 * ends with it: too many kernels are proved again rather than too few. A plan and a text in Peal's
 * language use no other file, except as their entry says.
 */
#include "cli/ci/ci.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { MAX_NAME = 512 };

/* A search: the files that are still to be read, each once. */
struct uses_search {
    struct peal_ci_tree *tree;
    PEAL_VEC(struct peal_ci_file *) left;
    uint32_t number; /* what `seen` is for this search */
};

static bool ends_with_name(const char *path, const char *name)
{
    size_t path_len = strlen(path), len = strlen(name);
    return len && path_len >= len && strcmp(path + path_len - len, name) == 0 &&
           (path_len == len || path[path_len - len - 1] == '/');
}

/* Follows one name. True: it changed, or is gone. */
static bool follow(struct uses_search *search, const char *name)
{
    while (strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0)
        name += name[1] == '/' ? 2 : 3;
    for (size_t i = 0; i < search->tree->changed.len; i++) {
        if (ends_with_name(search->tree->changed.at[i], name))
            return true;
    }
    for (size_t i = 0; i < search->tree->files.len; i++) {
        struct peal_ci_file *file = &search->tree->files.at[i];
        if (file->seen == search->number || !file->text || !ends_with_name(file->path, name))
            continue;
        file->seen = search->number;
        if (!peal_vec_push(&search->left, file))
            return true;
    }
    return false;
}

/* A module of Python, "a.b" or "..a.b", by the files that it may be. */
static bool follow_module(struct uses_search *search, const char *module, size_t len,
                          const char *item, size_t item_len)
{
    char path[MAX_NAME];
    while (len && *module == '.')
        module++, len--;
    int n = snprintf(path, sizeof path, "%.*s%s%.*s", (int)len, module, len && item_len ? "/" : "",
                     (int)item_len, item);
    if (n <= 0 || (size_t)n + sizeof "/__init__.py" > sizeof path)
        return false;
    for (char *c = path; *c; c++)
        *c = *c == '.' ? '/' : *c;
    memcpy(path + n, ".py", sizeof ".py");
    if (follow(search, path))
        return true;
    memcpy(path + n, "/__init__.py", sizeof "/__init__.py");
    return follow(search, path);
}

static size_t word_len(const char *text)
{
    size_t len = 0;
    while (isalnum((unsigned char)text[len]) || text[len] == '_' || text[len] == '.')
        len++;
    return len;
}

/* import a.b as c, d      from ..a import b, c */
static bool follow_import(struct uses_search *search, const char *line, const char *end)
{
    bool from = strncmp(line, "from ", 5) == 0;
    const char *module = NULL;
    size_t module_len = 0;
    if (!from && strncmp(line, "import ", 7) != 0)
        return false;
    line += from ? 5 : 7;
    if (from) {
        line += strspn(line, " \t");
        module = line;
        module_len = word_len(line);
        line += module_len;
        if (follow_module(search, module, module_len, "", 0))
            return true;
    }
    while (line < end) {
        size_t len = word_len(line);
        if (len && (from ? follow_module(search, module, module_len, line, len)
                         : follow_module(search, line, len, "", 0)))
            return true;
        line += len ? len : 1;
    }
    return false;
}

/* #include "NAME" or <NAME>, also __has_include and macros' arguments in quotes on such lines */
static bool follow_include(struct uses_search *search, const char *line, const char *end)
{
    line++;
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7) != 0 && strncmp(line, "import", 6) != 0 &&
        strncmp(line, "embed", 5) != 0)
        return false;
    const char *open = line + strcspn(line, "\"<\n");
    const char *name = open + 1, *close = name;
    char copy[MAX_NAME];
    while (open < end && close < end && *close != '"' && *close != '>')
        close++;
    size_t len = close < end && open < end ? (size_t)(close - name) : 0;
    if (!len || len >= sizeof copy)
        return false;
    memcpy(copy, name, len);
    copy[len] = '\0';
    return follow(search, copy);
}

static bool scan(struct uses_search *search, const struct peal_ci_file *file)
{
    for (const char *line = file->text; *line;) {
        const char *end = line + strcspn(line, "\n");
        line += strspn(line, " \t");
        if (*line == '#' ? follow_include(search, line, end) : follow_import(search, line, end))
            return true;
        line = end + (*end == '\n');
    }
    return false;
}

/* Did anything in the file's folder or below change? In the top folder, only files beside it. */
static bool folder_changed(const struct peal_ci_tree *tree, const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    for (size_t i = 0; i < tree->changed.len; i++) {
        const char *changed = tree->changed.at[i];
        if (strncmp(changed, path, len) == 0 && (len || !strchr(changed, '/')))
            return true;
    }
    return false;
}

bool peal_ci_uses_change(struct peal_ci_tree *tree, struct peal_ci_file *file,
                         const struct peal_ci_patterns *uses)
{
    struct uses_search search = {.tree = tree, .number = file->seen + 1};
    bool found = folder_changed(tree, file->path);
    for (size_t i = 0; i < tree->changed.len && !found; i++)
        found = peal_ci_patterns_name(uses, tree->changed.at[i]);
    for (size_t i = 0; i < tree->files.len; i++) {
        if (search.number <= tree->files.at[i].seen)
            search.number = tree->files.at[i].seen + 1;
    }
    file->seen = search.number;
    if (!found && file->text)
        found = !peal_vec_push(&search.left, file);
    while (!found && search.left.len) {
        const struct peal_ci_file *next = search.left.at[--search.left.len];
        found = scan(&search, next);
    }
    peal_vec_release(&search.left);
    return found;
}
