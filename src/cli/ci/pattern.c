/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of paths, without recursion: the time is at most the product of both lengths. */
#include "cli/ci/ci.h"

#include <string.h>

/* Where to go on after a mismatch: the pattern behind the last star, and the text behind what it has
 * taken so far. */
struct retry {
    const char *pattern, *path;
};

/* The next text that `**` + `/` may leave to the rest: the beginning of another folder. */
static const char *next_folder(const char *path)
{
    const char *slash = strchr(path, '/');
    return slash ? slash + 1 : NULL;
}

/* Lets the last star take more. A single one takes no slash. False: none can. */
static bool take_more(struct retry *one, struct retry *deep, const char **pattern,
                      const char **path)
{
    if (one->pattern && *one->path && *one->path != '/') {
        one->path++;
        *pattern = one->pattern;
        *path = one->path;
        return true;
    }
    one->pattern = NULL;
    if (!deep->pattern)
        return false;
    bool folders = deep->pattern[-1] == '/';
    if (folders)
        deep->path = next_folder(deep->path);
    else
        deep->path = *deep->path ? deep->path + 1 : NULL;
    if (!deep->path)
        deep->pattern = NULL;
    *pattern = deep->pattern;
    *path = deep->path;
    return deep->pattern != NULL;
}

static bool fits(const char *pattern, const char *path)
{
    struct retry one = {NULL, NULL}, deep = {NULL, NULL};
    for (;;) {
        if (pattern[0] == '*' && pattern[1] == '*') {
            pattern += 2;
            pattern += *pattern == '/';
            deep = (struct retry){pattern, path};
            one.pattern = NULL;
        } else if (*pattern == '*') {
            pattern++;
            one = (struct retry){pattern, path};
        } else if (*path && (*pattern == *path || (*pattern == '?' && *path != '/'))) {
            pattern++;
            path++;
        } else if (!*path && !*pattern) {
            return true;
        } else if (!take_more(&one, &deep, &pattern, &path)) {
            return false;
        }
    }
}

bool peal_ci_pattern_names(const char *pattern, const char *path)
{
    size_t len = strlen(pattern);
    const char *slash = strchr(pattern, '/'), *last = strrchr(path, '/');
    if (!slash)
        return fits(pattern, last ? last + 1 : path);
    if (slash == pattern)
        pattern++, len--;
    if (len && pattern[len - 1] == '/' && !strpbrk(pattern, "*?"))
        return strncmp(pattern, path, len) == 0;
    return fits(pattern, path);
}

bool peal_ci_patterns_name(const struct peal_ci_patterns *patterns, const char *path)
{
    for (size_t i = 0; i < patterns->len; i++) {
        if (peal_ci_pattern_names(patterns->at[i], path))
            return true;
    }
    return false;
}
