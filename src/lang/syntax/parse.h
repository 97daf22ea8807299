/* SPDX-License-Identifier: Apache-2.0 */
/* Text to module. The grammar is docs/language.md; names and types are left to deduce. */
#ifndef PEAL_LANG_PARSE_H
#define PEAL_LANG_PARSE_H

#include "lang/tree/module.h"

/* PEAL_INVALID: the errors, possibly several, are in diags. The source is borrowed and must outlive
 * the module, whose positions point into it. On PEAL_OK *out is freed with peal_module_free. */
enum peal_status peal_parse(const struct peal_source *source, struct peal_diags *diags,
                            struct peal_module **out);

/* For editors: the same, but on PEAL_INVALID, too, *out is a module, with what could be read of the text. It may be
 * deduced; only who looks names up in it should rely on it. */
enum peal_status peal_parse_partial(const struct peal_source *source, struct peal_diags *diags,
                                    struct peal_module **out);

/* Adds the kernels of a text to those of the module. After a failure the module has none of the
 * text's kernels; its owner still frees it. */
enum peal_status peal_parse_into(struct peal_module *module, const struct peal_source *source,
                                 struct peal_diags *diags);

#endif
