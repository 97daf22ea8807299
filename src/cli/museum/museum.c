/* SPDX-License-Identifier: Apache-2.0 */
/* The museum's texts by name. */
#include "cli/museum/museum.h"

#include <string.h>
#include <unistd.h>

const struct peal_source *peal_museum_find(const char *name)
{
    for (size_t i = 0; i < peal_museum_text_count; i++) {
        if (strcmp(peal_museum_texts[i].name, name) == 0)
            return &peal_museum_texts[i];
    }
    return NULL;
}

const struct peal_source *peal_museum_instead_of(const char *path)
{
    static const char folder[] = "museum/";
    if (strncmp(path, folder, sizeof folder - 1) != 0 || access(path, F_OK) == 0)
        return NULL;
    return peal_museum_find(path + sizeof folder - 1);
}
