/* SPDX-License-Identifier: Apache-2.0 */
/* XML as a stream of elements, by expat. Document types and entities are refused, so that no text is longer
 * than the file. Every error has its line and column.
 */
#ifndef PEAL_TOPOLOGY_READ_XML_H
#define PEAL_TOPOLOGY_READ_XML_H

#include "base/base.h"
#include <peal/types.h>

#include <stdbool.h>
#include <stdint.h>

enum { PEAL_XML_DEPTH = 256 }; /* elements inside each other */

struct peal_xml {
    /* The caller's. */
    const struct peal_source *source;
    struct peal_diags *diags;
    void *context;
    void (*start)(struct peal_xml *xml, const char *name);
    void (*end)(struct peal_xml *xml);                                 /* or NULL */
    void (*text)(struct peal_xml *xml, const char *bytes, size_t len); /* or NULL: in pieces */

    /* Of the element that starts or ends: the number of elements around it, and, as it starts, the rest. */
    uint32_t depth;
    const char **attributes; /* name, value, ..., NULL */
    struct peal_pos pos;
    uint64_t first, len; /* its tag, in bytes of the text */

    bool failed;
    void *parser;
};

/* PEAL_UNSUPPORTED after a diagnostic: this build has no reader for XML. */
enum peal_status peal_xml_read(struct peal_xml *xml);

/* Its value, or NULL. */
const char *peal_xml_find(const struct peal_xml *xml, const char *attribute);
/* An error about an attribute (NULL: about the element). Nothing is read any more. */
void peal_xml_refuse(struct peal_xml *xml, const char *attribute, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
