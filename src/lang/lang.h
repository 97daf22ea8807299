/* SPDX-License-Identifier: Apache-2.0 */
/* lang: the front end. A text, or a program that calls the builder, becomes a lowered kernel.
 *
 *   syntax/    text -> tree, with a position on every node (parse.h), and back (print.h); format.h
 *   tree/      the tree itself (module.h) and what must hold for it after every pass (validate.h)
 *   deduce/    names, types, shapes and directions, or diagnostics (deduce.h)
 *   build/     the calls of peal/build.h, which make a tree without text
 *   lower/     the passes: calls of kernels and collectives become their bodies (lower.h)
 *   library.h  the built-in kernels
 *   load.h     all of the above in one call: a name, a file or a text becomes a kernel
 *
 * Start reading at load.c: it is the list of calls. plan/ continues from there.
 */
#ifndef PEAL_LANG_LANG_H
#define PEAL_LANG_LANG_H

#include "lang/deduce/deduce.h"
#include "lang/library.h"
#include "lang/load.h"
#include "lang/lower/lower.h"
#include "lang/syntax/lex.h"
#include "lang/syntax/parse.h"
#include "lang/syntax/format.h"
#include "lang/syntax/print.h"
#include "lang/syntax/syntax.h"
#include "lang/tree/module.h"
#include "lang/tree/validate.h"

#endif
