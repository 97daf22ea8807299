/* SPDX-License-Identifier: Apache-2.0 */
/* From a name, a file or a text to a lowered kernel: parse, deduce, lower. */
#ifndef PEAL_LANG_LOAD_H
#define PEAL_LANG_LOAD_H

#include "lang/tree/module.h"

/* A loaded program: a file's module or the library, lowered on demand. Owns source and module. */
struct peal_program;

/* `path_or_name` is a path (has a '/' or ends in .peal; '-' is standard input) or a built-in kernel's name. *out must be NULL
 * before. On PEAL_INVALID it may still be set, because diagnostics point into its text: close it
 * after printing them. */
enum peal_status peal_program_open(const char *path_or_name, struct peal_diags *diags,
                                   struct peal_program **out);
/* The two cases of it, for callers that know which one they have. */
enum peal_status peal_program_file(const char *path, struct peal_diags *diags,
                                   struct peal_program **out);
enum peal_status peal_program_builtin(const char *name, struct peal_diags *diags,
                                      struct peal_program **out);
/* Is this the path of a file, or a built-in's name? */
bool peal_program_is_path(const char *path_or_name);
/* The text is copied. */
enum peal_status peal_program_text(const char *name, const char *text, size_t len,
                                   struct peal_diags *diags, struct peal_program **out);
void peal_program_close(struct peal_program *program);

/* The lowered kernel of that name. NULL: the requested built-in, or the file's last kernel. */
const struct peal_kernel *peal_program_kernel(struct peal_program *program, const char *name,
                                              struct peal_diags *diags);

/* Like peal_library_orders_pairs, for the library that comes with every program. */
bool peal_program_orders_pairs(const struct peal_program *program, const char *kernel);

/* The user-defined reduction of that name in a text; NULL name: the text's last. PEAL_INVALID:
 * `why` has the diagnostics. */
enum peal_status peal_formula_read(const char *text, const char *name, struct peal_formula *out,
                                   struct peal_text *why);

/* A reduction that a caller gives for a kernel: either a text, of which the last reduction counts,
 * or the name of one that the kernel's own text declares. A text is recognised by its operands. */
enum peal_status peal_formula_given(const struct peal_kernel *kernel, const char *given,
                                    struct peal_formula *out, struct peal_text *why);

/* The module as written: that of the file, or the library. */
const struct peal_module *peal_program_module(const struct peal_program *program);

#endif
