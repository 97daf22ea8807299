/* SPDX-License-Identifier: Apache-2.0 */
/* base: what every folder stands on.
 *
 *   arena.h   memory that is freed all at once        vec.h    growing arrays
 *   text.h    a growing string, can be wrapped        size.h   checked sizes, K M G parsing
 *   diag.h    collected diagnostics with carets       json.h   the only writer of JSON
 *   json_read.h  a reader of JSON
 *   hash.h    64-bit hashing                          sha256.h digests that are kept
 *   index.h   the hash table                          clock.h  the clock
 *   intern.h  one pointer per distinct name           nearest.h  the name that was meant
 *   keys.h    a set of keys, compared in full         child.h  another program, for its output
 *   parallel.h  independent pieces of work on several threads
 *   formula.h   user-defined reductions
 *   rate.h    exact rates (picoseconds per byte) and times
 *
 *   tables/   what exists in the language and in plans, once: ops.def (operations), fn.def
 *             (functions of data), collectives.def (contract.h), dtype.h (data types, reductions), words.def
 *
 * Start reading at diag.h: it is how every reader of input reports errors.
 */
#ifndef PEAL_BASE_BASE_H
#define PEAL_BASE_BASE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/child.h"
#include "base/diag.h"
#include "base/formula.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/intern.h"
#include "base/json.h"
#include "base/json_read.h"
#include "base/keys.h"
#include "base/nearest.h"
#include "base/parallel.h"
#include "base/rate.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/tables/contract.h"
#include "base/tables/dtype.h"
#include "base/tables/ops.h"
#include "base/tables/words.h"
#include "base/text.h"
#include "base/vec.h"

#endif
