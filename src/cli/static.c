/* SPDX-License-Identifier: Apache-2.0 */
/* Of the command that is linked statically: the functions that load libraries, which refuse to. Those of
 * the C library would look for the same version of itself on whatever system this runs. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>

void *dlopen(const char *path, int flags)
{
    (void)path, (void)flags;
    return NULL;
}

char *dlerror(void)
{
    static char why[] = "this peal is linked statically and loads no libraries";
    return why;
}

void *dlsym(void *restrict library, const char *restrict name)
{
    (void)library, (void)name;
    return NULL;
}

int dlclose(void *library)
{
    (void)library;
    return -1;
}

int dlinfo(void *restrict library, int request, void *restrict out)
{
    (void)library, (void)request, (void)out;
    return -1;
}
