/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs in a folder, one small text file each. */
#include "verify/cache/cache.h"

#include "verify/story/story.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Raised whenever the analysis or the file format changes, so that older proofs are not found. */
#define CACHE_VERSION 17

const char *peal_cache_folder(struct peal_arena *arena)
{
    struct peal_text path = {0};
    const char *own = getenv("PEAL_CACHE"), *cache = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    if (own && *own)
        peal_text_puts(&path, own);
    else if (cache && *cache == '/')
        peal_text_printf(&path, "%s/peal", cache);
    else if (home && *home == '/')
        peal_text_printf(&path, "%s/.cache/peal", home);
    const char *folder = NULL;
    if (path.len && !path.failed) {
        bool there = mkdir(path.at, 0700) == 0 || errno == EEXIST;
        folder = there ? peal_arena_copy(arena, path.at, path.len) : NULL;
    }
    peal_text_release(&path);
    return folder;
}

/* The path of a proof: a hash of the plan, the options and the version of the analysis. */
static void put_path(const char *folder, const struct peal_plan *plan,
                     const struct peal_verify_options *o, uint32_t launches, struct peal_text *out)
{
    char shape[PEAL_SHA256_HEX + 1];
    (void)peal_plan_shape(plan, shape);
    peal_text_printf(out, "%s/proved-%d-%s-%" PRIu32 "-%d%d%s", folder, CACHE_VERSION, shape,
                     launches, (int)o->engine, o->no_result, o->pairwise ? "-pairwise" : "");
}

/* One fact per line; the two texts come last. */
static bool read_proof(const char *path, struct answer *a)
{
    FILE *file = fopen(path, "r");
    char open_why[512] = "", bits_why[1024] = "";
    int reuse, bits, same_order, monotone, relaxed, undecided, in_order;
    struct peal_verification *v = &a->v;
    if (!file)
        return false;
    bool good = fscanf(file,
                       "peal proof 5\nreuse %d %d %d\nbits %d %d\ndepth %" SCNu32 " %" SCNu32
                       "\nmonotone %d %d\nsize %" SCNu64 " %" SCNu64 " %" SCNu64 "\n",
                       &reuse, &undecided, &in_order, &bits, &same_order, &v->least_depth,
                       &v->depth, &monotone, &relaxed, &v->ops, &v->accesses, &v->states) == 12 &&
                reuse >= 0 && reuse <= PEAL_REUSE_CLOSED && bits >= 0 &&
                bits <= PEAL_BITS_DIFFERENT && fgets(open_why, sizeof open_why, file) &&
                fgets(bits_why, sizeof bits_why, file);
    fclose(file);
    if (!good)
        return false;
    open_why[strcspn(open_why, "\n")] = bits_why[strcspn(bits_why, "\n")] = '\0';
    enum { WORD = 5 }; /* "open ", "bits " */
    if (strlen(open_why) < WORD || strlen(bits_why) < WORD)
        return false;
    v->verdict = PEAL_PROVED;
    v->reuse = (enum peal_reuse)reuse;
    v->closed_undecided = undecided;
    v->in_order = in_order;
    v->bits = (enum peal_bits)bits;
    v->same_order = same_order;
    v->monotone = monotone;
    v->has_relaxed = relaxed;
    v->open_why = open_why[WORD] ? peal_answer_text(a, "%s", open_why + WORD) : NULL;
    v->bits_why = bits_why[WORD] ? peal_answer_text(a, "%s", bits_why + WORD) : NULL;
    v->cached = true;
    return true;
}

/* How much of the text is kept: all but the place "(file:line)", which differs in another text of
 * the same shape. */
static int without_place(const char *text)
{
    enum { MAX_KEPT = 500 };
    size_t len = text ? strlen(text) : 0;
    const char *place = len && text[len - 1] == ')' ? strrchr(text, '(') : NULL;
    if (place && place > text)
        len = (size_t)(place - text) - 1;
    return (int)(len < MAX_KEPT ? len : MAX_KEPT);
}

/* Written under another name and renamed: readers see all of it or nothing. */
static void write_proof(const char *path, const struct peal_verification *v)
{
    struct peal_text temporary = {0};
    peal_text_printf(&temporary, "%s.%ld.%p", path, (long)getpid(), (const void *)v);
    FILE *file = temporary.failed ? NULL : fopen(temporary.at, "w");
    const char *open_why = v->open_why ? v->open_why : "";
    const char *bits_why = v->bits_why ? v->bits_why : "";
    if (file) {
        fprintf(file,
                "peal proof 5\nreuse %d %d %d\nbits %d %d\ndepth %" PRIu32 " %" PRIu32
                "\nmonotone %d %d\nsize %" PRIu64 " %" PRIu64 " %" PRIu64
                "\nopen %.*s\nbits %.1000s\n",
                (int)v->reuse, v->closed_undecided, v->in_order, (int)v->bits, v->same_order,
                v->least_depth, v->depth, v->monotone, v->has_relaxed, v->ops, v->accesses,
                v->states, without_place(v->open_why), open_why, bits_why);
        bool good = fclose(file) == 0;
        if (!good || rename(temporary.at, path) != 0)
            remove(temporary.at);
    }
    peal_text_release(&temporary);
}

static struct peal_verification *from_cache(const struct peal_plan *plan, uint32_t launches,
                                            bool pairwise, const char *path)
{
    struct answer *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    uint64_t start = peal_now_ns();
    peal_arena_init(&a->arena, 0);
    if (!read_proof(path, a) || a->failed) {
        peal_verification_free(&a->v);
        return NULL;
    }
    a->v.nranks = plan->nranks;
    a->v.launches = launches;
    a->v.period = plan->period;
    a->v.kernel = peal_answer_text(a, "%s", peal_plan_string(plan, plan->kernel));
    a->v.plan_hash = plan->hash;
    a->v.contract = (enum peal_contract)plan->contract;
    peal_answer_promised(plan, a);
    a->v.pairwise = pairwise;
    a->v.milliseconds = peal_ms_since(start);
    return &a->v;
}

enum peal_status peal_verify_cached(const struct peal_plan *plan,
                                    const struct peal_verify_options *options, const char *folder,
                                    struct peal_verification **out)
{
    if (!folder)
        return peal_verify_plan(plan, options, out);
    uint32_t launches = options->launches ? options->launches : peal_verify_launches(plan);
    struct peal_text path = {0};
    put_path(folder, plan, options, launches, &path);
    *out = path.failed ? NULL : from_cache(plan, launches, options->pairwise, path.at);
    enum peal_status status = PEAL_OK;
    if (!*out) {
        status = peal_verify_plan(plan, options, out);
        /* The few proofs that needed more launches, or would need more, are not kept. */
        if (status == PEAL_OK && (*out)->verdict == PEAL_PROVED && !path.failed &&
            (*out)->launches == launches && !(*out)->needs_launches)
            write_proof(path.at, *out);
    }
    peal_text_release(&path);
    return status;
}
