/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library, as it was built. */
#include <peal/types.h>

#define TEXT_OF(number) #number
#define DOTTED(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

unsigned peal_version(void)
{
    return PEAL_VERSION_NUMBER;
}

const char *peal_version_text(void)
{
    return DOTTED(PEAL_VERSION_MAJOR, PEAL_VERSION_MINOR, PEAL_VERSION_PATCH);
}
