/* SPDX-License-Identifier: Apache-2.0 */
#include "topology/read/xml.h"

#include <expat.h>
#include <string.h>

static void stop(struct peal_xml *xml)
{
    if (!xml->failed)
        XML_StopParser(xml->parser, XML_FALSE);
    xml->failed = true;
}

static struct peal_pos here(const struct peal_xml *xml, uint32_t len)
{
    return (struct peal_pos){xml->source, (uint32_t)XML_GetCurrentLineNumber(xml->parser),
                             (uint32_t)XML_GetCurrentColumnNumber(xml->parser) + 1, len};
}

/* The position of an attribute's name in the tag, or of the tag itself if it is not found. */
static struct peal_pos find_pos(const struct peal_xml *xml, const char *name)
{
    struct peal_pos pos = xml->pos;
    size_t len = strlen(name);
    uint64_t end = xml->first + xml->len;
    if (end > xml->source->len)
        return xml->pos;
    for (uint64_t i = xml->first; i + len < end; i++, pos.col++) {
        const char *at = xml->source->text + i;
        if (i > xml->first && strchr(" \t\r\n", at[-1]) && memcmp(at, name, len) == 0 &&
            strchr(" \t\r\n=", at[len])) {
            pos.len = (uint32_t)len;
            return pos;
        }
        if (*at == '\n') {
            pos.line++;
            pos.col = 0;
        }
    }
    return xml->pos;
}

const char *peal_xml_find(const struct peal_xml *xml, const char *attribute)
{
    for (const char **a = xml->attributes; *a; a += 2) {
        if (strcmp(a[0], attribute) == 0)
            return a[1];
    }
    return NULL;
}

void peal_xml_refuse(struct peal_xml *xml, const char *attribute, const char *format, ...)
{
    va_list args;
    if (xml->failed)
        return;
    va_start(args, format);
    peal_diag_add(xml->diags, PEAL_ERROR, attribute ? find_pos(xml, attribute) : xml->pos, format,
                  args);
    va_end(args);
    stop(xml);
}

static void XMLCALL on_start(void *opaque, const XML_Char *name, const XML_Char **attributes)
{
    struct peal_xml *xml = opaque;
    if (xml->failed)
        return;
    xml->pos = here(xml, (uint32_t)strlen(name) + 1);
    xml->first = (uint64_t)XML_GetCurrentByteIndex(xml->parser);
    xml->len = (uint64_t)XML_GetCurrentByteCount(xml->parser);
    xml->attributes = (const char **)attributes;
    if (xml->depth == PEAL_XML_DEPTH)
        peal_xml_refuse(xml, NULL, "elements are nested more than %d deep", PEAL_XML_DEPTH);
    else
        xml->start(xml, name);
    xml->depth++;
}

static void XMLCALL on_end(void *opaque, const XML_Char *name)
{
    struct peal_xml *xml = opaque;
    (void)name;
    if (xml->failed)
        return;
    xml->depth--;
    if (xml->end)
        xml->end(xml);
}

static void XMLCALL on_text(void *opaque, const XML_Char *bytes, int len)
{
    struct peal_xml *xml = opaque;
    if (!xml->failed && xml->text)
        xml->text(xml, bytes, (size_t)len);
}

static void XMLCALL on_doctype(void *opaque, const XML_Char *name, const XML_Char *system,
                               const XML_Char *public, int internal)
{
    struct peal_xml *xml = opaque;
    (void)name, (void)public, (void)internal;
    /* hwloc's files name theirs, which says nothing and is not read. */
    if (xml->failed || (system && !internal))
        return;
    xml->pos = here(xml, 0);
    peal_xml_refuse(xml, NULL, "document types and entities are not read");
}

/* In pieces, so that a fault is found before the rest is read. */
static enum peal_status parse(struct peal_xml *xml)
{
    enum { PIECE = 1 << 20 };
    for (size_t at = 0; !xml->failed; at += PIECE) {
        size_t left = xml->source->len - at;
        int len = (int)peal_size_min(left, PIECE);
        bool last = left <= PIECE;
        if (XML_Parse(xml->parser, xml->source->text + at, len, last) == XML_STATUS_ERROR &&
            !xml->failed) {
            enum XML_Error code = XML_GetErrorCode(xml->parser);
            if (code == XML_ERROR_NO_MEMORY)
                return PEAL_NO_MEMORY;
            peal_diag_error(xml->diags, here(xml, 0), "not XML: %s", XML_ErrorString(code));
            return PEAL_INVALID;
        }
        if (last)
            break;
    }
    return xml->failed ? PEAL_INVALID : PEAL_OK;
}

enum peal_status peal_xml_read(struct peal_xml *xml)
{
    xml->parser = XML_ParserCreate(NULL);
    if (!xml->parser)
        return PEAL_NO_MEMORY;
    XML_SetUserData(xml->parser, xml);
    XML_SetElementHandler(xml->parser, on_start, on_end);
    XML_SetCharacterDataHandler(xml->parser, on_text);
    XML_SetStartDoctypeDeclHandler(xml->parser, on_doctype);
    enum peal_status status = parse(xml);
    XML_ParserFree(xml->parser);
    return status;
}
