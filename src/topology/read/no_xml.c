/* SPDX-License-Identifier: Apache-2.0 */
/* xml.h in a build without expat. */
#include "topology/read/xml.h"

enum peal_status peal_xml_read(struct peal_xml *xml)
{
    struct peal_pos pos = {.source = xml->source, .line = 1, .col = 1};
    peal_diag_error(xml->diags, pos, "this build of peal reads no XML: expat was missing");
    return PEAL_UNSUPPORTED;
}

const char *peal_xml_find(const struct peal_xml *xml, const char *attribute)
{
    (void)xml, (void)attribute;
    return NULL;
}

void peal_xml_refuse(struct peal_xml *xml, const char *attribute, const char *format, ...)
{
    (void)xml, (void)attribute, (void)format;
}
