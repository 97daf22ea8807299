/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel in C++ for one number of ranks: a process per rank, then a plan per level. */
#include "cli/record/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rec_arg make_arg(const struct recorded *all, uint32_t i, uint32_t rank)
{
    const struct signature_item *item = &all->signature->items[i];
    struct rec_arg arg = {.kind = REC_ARG_INT, .value = item->value};
    switch (item->kind) {
    case SIGNATURE_NUMBER:
        break;
    case SIGNATURE_RANKS:
        arg.value = all->ranks;
        break;
    case SIGNATURE_RANK:
        arg.value = rank;
        break;
    case SIGNATURE_ROOT:
        arg.value = all->root;
        break;
    case SIGNATURE_CONTEXT:
        arg.kind = REC_ARG_CONTEXT;
        break;
    case SIGNATURE_MEMORY:
        arg.kind = REC_ARG_TENSOR;
        arg.address = peal_signature_address(all->signature, i, rank, all->ranks);
        arg.bytes = peal_signature_bytes(item, all->ranks);
        arg.dtype = (uint32_t)item->dtype;
        arg.ndims = item->ndims;
        for (uint32_t d = 0; d < item->ndims; d++)
            arg.shape[d] = (uint32_t)item->shape[d] * (item->per_rank[d] ? all->ranks : 1);
        if (item->pointer) {
            arg.kind = REC_ARG_INT;
            arg.value = (int64_t)arg.address;
        }
        break;
    }
    return arg;
}

/* All memory that a rank's process maps: shared items of every rank, its own of the others. */
static struct rec_region *list_regions(const struct recorded *all, uint32_t rank, uint32_t *count)
{
    const struct signature *s = all->signature;
    struct rec_region *list =
        peal_arena_alloc(all->cli->arena, (size_t)s->len * all->ranks * sizeof *list + 1);
    *count = 0;
    for (uint32_t i = 0; list && i < s->len; i++) {
        const struct signature_item *item = &s->items[i];
        bool shared = peal_signature_is_shared(item);
        if (item->kind != SIGNATURE_MEMORY)
            continue;
        for (uint32_t r = shared ? 0 : rank; r < (shared ? all->ranks : rank + 1); r++)
            list[(*count)++] =
                (struct rec_region){.address = peal_signature_address(s, i, r, all->ranks),
                                    .bytes = peal_signature_bytes(item, all->ranks),
                                    .dtype = (uint32_t)item->dtype,
                                    .known = item->contents.text != NULL};
    }
    return list;
}

static int compare_places(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

struct recorded_places {
    PEAL_VEC(uint64_t) list;
};

/* Adds the places of a rank's events. */
static void add_places(const struct recording *from, struct recorded_places *places)
{
    for (size_t at = 0;
         from->at && at <= from->len && from->len - at >= sizeof(struct rec_event);) {
        struct rec_event e;
        memcpy(&e, from->at + at, sizeof e);
        at += sizeof e + ((size_t)e.ndst + e.nsrc) * sizeof(struct rec_span);
        if (e.kind == REC_STRING && e.a >= 0 && e.a < 1 << 16)
            at += peal_size_align((uint64_t)e.a, 8);
        size_t n = places->list.len;
        bool again = n && places->list.at[n - 1] == e.pc;
        if (e.pc && !again)
            (void)peal_vec_push(&places->list, e.pc); /* without memory, it has no line */
    }
}

/* The places of all scalar accesses, looked up at once. */
static void find_places(struct recorded *all)
{
    struct recorded_places places = {0};
    size_t n = 0;
    for (uint32_t r = 0; r < all->ranks; r++)
        add_places(&all->at[r], &places);
    if (places.list.len)
        qsort(places.list.at, places.list.len, sizeof *places.list.at, compare_places);
    for (size_t i = 0; i < places.list.len; i++) {
        if (!n || places.list.at[n - 1] != places.list.at[i])
            places.list.at[n++] = places.list.at[i];
    }
    peal_compile_places(all->compiled, places.list.at, n);
    peal_vec_release(&places.list);
}

static void list_calls(const struct signature *s, struct rec_job *job)
{
    job->ncalls = 1 + s->nthen;
    job->calls[0].nargs = s->first;
    for (uint32_t i = 0; i < s->first; i++)
        job->calls[0].args[i] = (uint8_t)i;
    for (uint32_t c = 0; c < s->nthen; c++) {
        job->calls[c + 1].nargs = s->then[c].nargs;
        memcpy(job->calls[c + 1].args, s->then[c].args, sizeof s->then[c].args);
    }
}

bool peal_recorded_run(struct recorded *all)
{
    const struct signature *s = all->signature;
    all->at = calloc(all->ranks, sizeof *all->at);
    struct rec_job *job = calloc(1, sizeof *job);
    if (!all->at || !job || all->ranks > REC_MAX_RANKS) {
        free(job);
        peal_cli_fail(all->cli, "more than %d ranks cannot be recorded", REC_MAX_RANKS);
        return false;
    }
    for (uint32_t r = 0; r < all->ranks; r++) {
        *job =
            (struct rec_job){.rank = r,
                             .ranks = all->ranks,
                             .blocks = (uint32_t)(all->options->blocks ? all->options->blocks : 1),
                             .packed = !s->plain,
                             .nargs = s->len};
        list_calls(s, job);
        for (uint32_t i = 0; i < s->len; i++) {
            job->args[i] = make_arg(all, i, r);
            if (s->items[i].kind == SIGNATURE_MEMORY && peal_signature_is_shared(&s->items[i]))
                job->window_bytes =
                    job->args[i].address + job->args[i].bytes - peal_signature_window(r);
        }
        for (uint32_t p = 0; p < all->ranks; p++)
            job->windows[p] = peal_signature_window(p);
        job->regions = list_regions(all, r, &job->nregions);
        if (job->regions)
            peal_child_run(all->cli, all->compiled, all->entry, job, s, &all->at[r]);
    }
    free(job);
    find_places(all);
    return true;
}

static void declare_memory(const struct recorded *all, struct peal_record *record)
{
    const struct signature *s = all->signature;
    for (uint32_t i = 0; i < s->len; i++) {
        const struct signature_item *item = &s->items[i];
        for (uint32_t r = 0; r < all->ranks && item->kind == SIGNATURE_MEMORY; r++) {
            struct peal_record_region region = {.kind = item->memory,
                                                .name = item->name,
                                                .owner = r,
                                                .flags = item->flags,
                                                .address =
                                                    peal_signature_address(s, i, r, all->ranks),
                                                .bytes = peal_signature_bytes(item, all->ranks),
                                                .dtype = item->dtype};
            if (item->contents.text && item->memory == PEAL_RECORD_WINDOW)
                region.flags |= PEAL_RECORD_ZEROED; /* it has contents, at least */
            peal_record_region(record, &region);
        }
    }
}

/* Every block has core memory of its own. */
static void declare_core(const struct recorded *all, struct peal_record *record)
{
    uint32_t blocks = (uint32_t)(all->options->blocks ? all->options->blocks : 1);
    for (uint32_t i = 0; i < all->ranks * blocks * REC_SPACES; i++) {
        uint32_t rank = i / (blocks * REC_SPACES), block = i / REC_SPACES % blocks;
        uint32_t space = i % REC_SPACES;
        char name[32];
        snprintf(name, sizeof name, block ? "%s.%u" : "%s", peal_space_names[space], block);
        peal_record_region(record,
                           &(struct peal_record_region){
                               .kind = PEAL_RECORD_CORE,
                               .name = name,
                               .owner = rank,
                               .address = REC_CORE_ADDRESS +
                                          ((uint64_t)block * REC_SPACES + space) * REC_CORE_STRIDE,
                               .bytes = peal_size_min(8 * all->pipes->memory[space],
                                                      REC_CORE_STRIDE), /* decode.c checks */
                               .dtype = PEAL_U8});
    }
}

struct peal_plan *peal_recorded_plan(struct recorded *all, bool by_pipe, char *error,
                                     size_t error_cap)
{
    struct peal_record_args args;
    struct peal_record *record;
    struct peal_plan *plan = NULL;
    peal_record_args_init(&args);
    args.ranks = all->ranks;
    args.kernel = all->entry;
    args.launches = all->launches == 1;
    args.implements = all->options->implements;
    args.op = all->op;
    args.root = all->root;
    enum peal_status status = peal_record_new(&args, &record);
    if (status != PEAL_OK) {
        snprintf(error, error_cap, "there is no contract '%s'",
                 args.implements ? args.implements : "");
        return NULL;
    }
    declare_memory(all, record);
    declare_core(all, record);
    for (uint32_t r = 0; r < all->ranks; r++)
        peal_decode_rank(all, r, by_pipe, record);
    peal_decode_check_known(all, record);
    if (peal_record_finish(record, error, error_cap, &plan) != PEAL_OK)
        return NULL;
    return plan;
}

void peal_recorded_release(struct recorded *all)
{
    for (uint32_t r = 0; all->at && r < all->ranks; r++)
        peal_child_release(&all->at[r]);
    free(all->at);
    all->at = NULL;
    peal_vec_release(&all->known);
    peal_vec_release(&all->written);
}

bool peal_recorded_open(const struct peal_cli *cli, const char *path,
                        const struct peal_kernel_options *options, struct peal_plan **out,
                        int *code)
{
    struct signature *signature = peal_arena_alloc(cli->arena, sizeof *signature);
    struct pipe_table *pipes = peal_arena_alloc(cli->arena, sizeof *pipes);
    struct peal_recorded_options given = options->recorded, *o = &given;
    struct compiled compiled = {0};
    char error[1024] = "";
    *code = PEAL_EXIT_USAGE;
    if (!signature || !pipes || !peal_beside_read(cli, path, o) ||
        !peal_signature_read(cli, o, signature))
        return false;
    if (options->ranks.len != 1) {
        peal_cli_usage(cli, "-n gives the number of ranks that '%s' is recorded for", path);
        return false;
    }
    if (o->entry && strchr(o->entry, ',') && !strchr(o->entry, '<')) {
        peal_cli_usage(cli, "--entry names several kernels: only peal verify takes them");
        return false;
    }
    *code = PEAL_EXIT_OTHER;
    if (!peal_pipes_read(cli, o->pipes ? o->pipes : "pto-a2a3", pipes))
        return false;
    struct recorded all = {.cli = cli,
                           .path = path,
                           .entry = o->entry ? o->entry : "kernel_entry",
                           .options = o,
                           .signature = signature,
                           .pipes = pipes,
                           .compiled = &compiled,
                           .ranks = (uint32_t)options->ranks.at[0],
                           .root = (uint32_t)peal_kernel_root(options),
                           .op = options->op.reduce,
                           .launches = 1,
                           .has_contents = o->inputs.len > 0};
    if (peal_compile(cli, path, pipes, all.signature, &compiled, code) && peal_recorded_run(&all)) {
        *out = peal_recorded_plan(&all, o->level == PEAL_LEVEL_PIPE, error, sizeof error);
        if (*out && all.beyond) {
            snprintf(error, sizeof error, "%s", all.beyond);
            free(*out);
            *out = NULL;
        }
        if (!*out)
            *code = peal_cli_fail(cli, "%s", error);
    }
    peal_recorded_release(&all);
    peal_compile_release(&compiled);
    return *out != NULL;
}
