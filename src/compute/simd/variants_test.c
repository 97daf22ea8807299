/* SPDX-License-Identifier: Apache-2.0 */
/* Every variant that this machine runs against generic C, to the bit: every function and dtype,
 * lengths 0 to 300, every misalignment, guard bytes, in place, special values, mixed dtypes.
 *
 * PEAL_SEED=N repeats a run; the seed is printed.
 */
#include "base/tests/unit.h"
#include "compute/functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SOURCES = 66,
    MAX_LEN = 300,
    GUARD = 128,
    ROOM = GUARD + 64 + 8 * MAX_LEN + GUARD,
};

static uint64_t rng_state;

static uint64_t rng(void)
{
    rng_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t x = rng_state;
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static uint32_t below(uint32_t n)
{
    return (uint32_t)(rng() % n);
}

/* Where rounding, NaN, zeros, infinities, denormals and wrapping show. */
static const uint16_t special_16[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00, 0xfc00, 0x7e00,
                                      0xfe01, 0x7c01, 0xffff, 0x0001, 0x8001, 0x03ff, 0x0400,
                                      0x7bff, 0xfbff, 0x3f80, 0x7f80, 0xff80, 0x7fc1, 0x7f81};
static const uint32_t special_32[] = {0,          0x80000000, 0x3f800000, 0xbf800000, 0x7f800000,
                                      0xff800000, 0x7fc00000, 0xffc12345, 0x7f800001, 0xffffffff,
                                      1,          0x80000001, 0x007fffff, 0x00800000, 0x7f7fffff,
                                      0x477fefff, 0x477ff000, 0x33000000, 0x33000001, 0x387fe000,
                                      0x3f808000, 0x3f818000, 0x80000000, 0x7fffffff, 2};
static const uint64_t special_64[] = {0,
                                      UINT64_C(0x8000000000000000),
                                      UINT64_C(0x3ff0000000000000),
                                      UINT64_C(0x7ff0000000000000),
                                      UINT64_C(0xfff0000000000000),
                                      UINT64_C(0x7ff8000000000000),
                                      UINT64_C(0xfff0000000000001),
                                      UINT64_C(0xffffffffffffffff),
                                      1,
                                      UINT64_C(0x000fffffffffffff),
                                      UINT64_C(0x7fefffffffffffff),
                                      UINT64_C(0x3ff0020000000001)};

#define PICK(table) (table)[below(sizeof(table) / sizeof *(table))]

static uint64_t special(size_t size)
{
    if (size == 2)
        return PICK(special_16);
    return size == 4 ? PICK(special_32) : PICK(special_64);
}

static void fill(void *at, enum peal_dtype dtype, size_t count)
{
    size_t size = peal_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = rng();
        if (below(2) == 0)
            bits = special(size);
        else if (below(2) == 0 && dtype == PEAL_F32)
            bits = (bits & 0x807fffff) | (uint64_t)(120 + below(16)) << 23; /* sums that round */
        memcpy((char *)at + i * size, &bits, size);
    }
}

/* One call: the same operands for both sides, each side with a destination of its own. */
struct call {
    enum peal_fn fn;
    enum peal_dtype dtype[MAX_SOURCES + 1]; /* sources, then the destination */
    uint32_t nsrc;
    uint32_t offset[MAX_SOURCES + 1];
    bool is_const[MAX_SOURCES];
    double value[MAX_SOURCES];
    int in_place; /* the source that is the destination, or -1 */
    uint32_t divisor;
    bool stream;
    size_t count;
};

static char src_room[MAX_SOURCES][ROOM], dst_room[2][ROOM];

static void report(const struct call *call, const struct peal_compute *variant)
{
    print_error("%s %s: count %zu, %u sources, in place %d, divisor %u, stream %d, dtypes",
                variant->name, peal_fn_info(call->fn)->name, call->count, call->nsrc,
                call->in_place, call->divisor, call->stream);
    for (uint32_t s = 0; s < call->nsrc; s++)
        print_error(" %s+%u%s", peal_dtype_name(call->dtype[s]), call->offset[s],
                    call->is_const[s] ? " (constant)" : "");
    print_error(" -> %s+%u\n", peal_dtype_name(call->dtype[MAX_SOURCES]),
                call->offset[MAX_SOURCES]);
    for (size_t i = 0; i < ROOM; i++) {
        if (dst_room[0][i] != dst_room[1][i]) {
            print_error("first difference at byte %td: 0x%02x instead of 0x%02x\n",
                        (ptrdiff_t)i - GUARD - (ptrdiff_t)call->offset[MAX_SOURCES],
                        dst_room[1][i] & 0xff, dst_room[0][i] & 0xff);
            break;
        }
    }
    fail_msg("differs from generic");
}

static void compare(const struct call *call, const struct peal_compute *variant)
{
    enum peal_dtype to = call->dtype[MAX_SOURCES];
    uint32_t to_offset = call->offset[MAX_SOURCES];
    memset(dst_room, 0xa5, sizeof dst_room);
    for (uint32_t s = 0; s < call->nsrc; s++)
        fill(src_room[s] + GUARD + call->offset[s], call->dtype[s], call->count);
    const struct peal_compute *sides[2] = {&peal_compute_generic, variant};
    for (int side = 0; side < 2; side++) {
        struct peal_operand dst = {dst_room[side] + GUARD + to_offset, 0, to}, src[MAX_SOURCES];
        for (uint32_t s = 0; s < call->nsrc; s++) {
            src[s] = (struct peal_operand){src_room[s] + GUARD + call->offset[s], call->value[s],
                                           call->dtype[s]};
            if (call->is_const[s])
                src[s].at = NULL;
            if (call->in_place == (int)s) {
                memcpy(dst.at, src_room[s] + GUARD + call->offset[s],
                       call->count * peal_dtype_size(to));
                src[s].at = dst.at;
            }
        }
        if (call->stream)
            sides[side]->combine_stream(call->fn, &dst, src, call->nsrc, call->count,
                                        call->divisor);
        else
            sides[side]->combine(call->fn, &dst, src, call->nsrc, call->count, call->divisor);
    }
    if (memcmp(dst_room[0], dst_room[1], ROOM) != 0)
        report(call, variant);
}

static uint32_t sources_of(enum peal_fn fn)
{
    static const uint32_t numbers[] = {2, 2, 3, 4, 1, 5, 8, 9, 64, 65};
    int operands = peal_fn_info(fn)->operands;
    return operands ? (uint32_t)operands : PICK(numbers);
}

static struct call plain_call(enum peal_fn fn, enum peal_dtype dtype, size_t count)
{
    struct call call = {.fn = fn, .nsrc = sources_of(fn), .in_place = -1, .count = count};
    for (uint32_t s = 0; s <= MAX_SOURCES; s++) {
        call.dtype[s] = dtype;
        call.offset[s] = below(2) ? 0 : below(64);
    }
    return call;
}

/* Calls check() with every variant but generic. */
static void for_each_variant(void (*check)(const struct peal_compute *))
{
    const struct peal_compute *variant;
    for (unsigned i = 1; (variant = peal_compute_at(i)); i++)
        check(variant);
}

static void check_lengths(const struct peal_compute *variant)
{
    for (enum peal_fn fn = 0; fn < PEAL_FN_COUNT; fn++) {
        for (enum peal_dtype dtype = 0; dtype < PEAL_SCALAR_DTYPES; dtype++) {
            if (!peal_fn_takes(fn, dtype))
                continue;
            for (size_t count = 0; count <= MAX_LEN; count++) {
                struct call call = plain_call(fn, dtype, count);
                call.stream = below(4) == 0;
                if (below(4) == 0)
                    call.in_place = (int)below(call.nsrc);
                if (below(8) == 0 && fn != PEAL_FN_SOFTMAX)
                    call.divisor = 1 + below(9);
                compare(&call, variant);
            }
        }
    }
}

TEST(every_function_and_dtype_agrees_at_lengths_0_to_300)
{
    for_each_variant(check_lengths);
}

static void check_alignments(const struct peal_compute *variant)
{
    for (enum peal_fn fn = 0; fn < PEAL_FN_COUNT; fn++) {
        for (enum peal_dtype dtype = 0; dtype < PEAL_SCALAR_DTYPES; dtype++) {
            if (!peal_fn_takes(fn, dtype) || !peal_fn_info(fn)->commutes)
                continue;
            for (uint32_t i = 0; i < 4 * 64; i++) {
                struct call call = plain_call(fn, dtype, 60 + below(200));
                call.nsrc = 2 + i % 3;
                for (uint32_t s = 0; s <= MAX_SOURCES; s++)
                    call.offset[s] = below(64);
                call.offset[i & 1 ? MAX_SOURCES : below(call.nsrc)] = i / 4;
                call.stream = i & 2;
                compare(&call, variant);
            }
        }
    }
}

TEST(every_misalignment_of_sources_and_destination_agrees)
{
    for_each_variant(check_alignments);
}

/* Random dtypes for each operand, within what the function takes; constants among the sources. */
static void check_mixed(const struct peal_compute *variant)
{
    for (int i = 0; i < 30000; i++) {
        enum peal_fn fn = (enum peal_fn)below(PEAL_FN_COUNT);
        if (peal_fn_info(fn)->types == PEAL_FN_PAIR)
            continue; /* record_test.c */
        struct call call = plain_call(fn, PEAL_F32, below(below(4) ? 40 : MAX_LEN));
        enum peal_dtype last = below(4) ? PEAL_F32 : PEAL_SCALAR_DTYPES - 1;
        for (uint32_t s = 0; s <= MAX_SOURCES; s++) {
            do
                call.dtype[s] = (enum peal_dtype)below(
                    peal_fn_takes(fn, PEAL_F32) ? (uint32_t)last + 1 : PEAL_SCALAR_DTYPES);
            while (!peal_fn_takes(fn, call.dtype[s]));
            if (s < MAX_SOURCES && below(4) == 0) {
                call.is_const[s] = true;
                call.value[s] = below(2) ? 0.1 * (int)(below(2000) - 1000) : (double)below(300);
            }
        }
        if (below(3) == 0 && fn != PEAL_FN_SOFTMAX)
            call.divisor = below(20);
        uint32_t s = below(call.nsrc);
        if (below(3) == 0 && !call.is_const[s] && call.dtype[s] == call.dtype[MAX_SOURCES])
            call.in_place = (int)s;
        call.stream = below(4) == 0;
        compare(&call, variant);
    }
}

TEST(operands_of_different_dtypes_agree)
{
    for_each_variant(check_mixed);
}

static void check_directly(const struct peal_compute *variant)
{
    for (enum peal_fn fn = 0; fn < PEAL_FN_COUNT; fn++) {
        for (enum peal_dtype dtype = 0; dtype < PEAL_SCALAR_DTYPES; dtype++) {
            peal_reducer *direct = variant->reducer(fn, dtype);
            if (!peal_fn_takes(fn, dtype) || !peal_fn_info(fn)->commutes) {
                assert_null(direct);
                continue;
            }
            if (dtype > PEAL_I64 && !direct)
                continue; /* generic C is used */
            assert_non_null(direct);
            static uint64_t a[100], b[100], expected[100], got[100];
            fill(a, dtype, 100);
            fill(b, dtype, 100);
            struct peal_operand dst = {expected, 0, dtype};
            struct peal_operand src[2] = {{a, 0, dtype}, {b, 0, dtype}};
            peal_compute_generic.combine(fn, &dst, src, 2, 100, 1);
            direct(got, (const void *const[]){a, b}, 2, 100);
            assert_memory_equal(got, expected, 100 * peal_dtype_size(dtype));
        }
    }
}

TEST(reducers_exist_for_all_commuting_functions)
{
    for_each_variant(check_directly);
}

enum { MAX_DESTINATIONS = 5, SPREAD_ROOM = ROOM * MAX_DESTINATIONS };

/* Both sides work on a copy of the same memory, in which destinations may be sources. */
static void check_spread(const struct peal_compute *variant)
{
    static char memory[2][2 * SPREAD_ROOM], before[2 * SPREAD_ROOM];
    static const enum peal_fn fns[] = {PEAL_FN_ADD, PEAL_FN_MUL, PEAL_FN_MAXIMUM, PEAL_FN_ID};
    for (int i = 0; i < 10000; i++) {
        enum peal_dtype dtype = (enum peal_dtype)below(PEAL_SCALAR_DTYPES);
        size_t count = below(MAX_LEN);
        uint32_t ndst = 1 + below(MAX_DESTINATIONS), nsrc = 1 + below(MAX_DESTINATIONS),
                 align = below(64);
        enum peal_fn fn = PICK(fns);
        if (!peal_fn_takes(fn, dtype))
            continue;
        nsrc = fn == PEAL_FN_ID ? 1 : nsrc;
        size_t to[MAX_DESTINATIONS], from[MAX_DESTINATIONS];
        for (uint32_t d = 0; d < ndst; d++)
            to[d] = (size_t)d * ROOM + GUARD + (i & 1 ? align & ~7u : below(64));
        for (uint32_t s = 0; s < nsrc; s++) {
            from[s] = SPREAD_ROOM + (size_t)s * ROOM + GUARD + below(64);
            if (below(4) == 0)
                from[s] = to[below(ndst)];
        }
        for (uint32_t s = 0; s < nsrc; s++)
            fill(before + from[s], dtype, count);
        for (int side = 0; side < 2; side++) {
            memcpy(memory[side], before, sizeof before);
            void *dst[MAX_DESTINATIONS];
            const void *src[MAX_DESTINATIONS];
            for (uint32_t d = 0; d < ndst; d++)
                dst[d] = memory[side] + to[d];
            for (uint32_t s = 0; s < nsrc; s++)
                src[s] = memory[side] + from[s];
            struct peal_spread spread = {fn,  dtype, below(2), below(ndst + 1), ndst, nsrc,
                                         dst, src,   count};
            (side ? variant : &peal_compute_generic)->spread(&spread);
        }
        if (memcmp(memory[0], memory[1], sizeof before) != 0)
            fail_msg("%s spread %s %s: count %zu, %u sources, %u destinations", variant->name,
                     peal_fn_info(fn)->name, peal_dtype_name(dtype), count, nsrc, ndst);
    }
}

/* The definition of spread itself: combine, then copies. */
TEST(generic_spread_is_combine_and_copies)
{
    static uint64_t a[MAX_LEN], b[MAX_LEN], one[MAX_LEN], two[MAX_LEN], expected[MAX_LEN];
    for (enum peal_dtype dtype = 0; dtype < PEAL_SCALAR_DTYPES; dtype++) {
        if (!peal_fn_takes(PEAL_FN_ADD, dtype))
            continue;
        fill(a, dtype, MAX_LEN);
        fill(b, dtype, MAX_LEN);
        struct peal_operand src[2] = {{a, 0, dtype}, {b, 0, dtype}}, dst = {expected, 0, dtype};
        peal_compute_generic.combine(PEAL_FN_ADD, &dst, src, 2, MAX_LEN, 1);
        struct peal_spread spread = {PEAL_FN_ADD,
                                     dtype,
                                     false,
                                     0,
                                     2,
                                     2,
                                     (void *const[]){one, two},
                                     (const void *const[]){a, b},
                                     MAX_LEN};
        peal_compute_generic.spread(&spread);
        assert_memory_equal(one, expected, MAX_LEN * peal_dtype_size(dtype));
        assert_memory_equal(two, expected, MAX_LEN * peal_dtype_size(dtype));
    }
}

TEST(several_destinations_agree)
{
    for_each_variant(check_spread);
}

/* An array that ends where memory does: a byte read or written beyond it faults. */
static char *at_the_edge(char *page_end, size_t bytes)
{
    return page_end - bytes;
}

static void check_edges(const struct peal_compute *variant)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *end[3];
    for (int i = 0; i < 3; i++) {
        char *map =
            mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(map != MAP_FAILED);
        end[i] = map + page;
        assert_int_equal(mprotect(end[i], page, PROT_NONE), 0);
    }
    for (enum peal_dtype dtype = 0; dtype < PEAL_SCALAR_DTYPES; dtype++) {
        if (!peal_fn_takes(PEAL_FN_ADD, dtype))
            continue;
        for (size_t count = 0; count <= 150; count++) {
            size_t bytes = count * peal_dtype_size(dtype);
            struct peal_operand dst = {at_the_edge(end[2], bytes), 0, dtype};
            struct peal_operand src[2] = {{at_the_edge(end[0], bytes), 0, dtype},
                                          {at_the_edge(end[1], bytes), 0, dtype}};
            variant->combine(PEAL_FN_ADD, &dst, src, 2, count, 1);
            variant->combine_stream(PEAL_FN_ADD, &dst, src, 2, count, 1);
            variant->combine(PEAL_FN_ADD, &dst, src, 2, count, 3);
            variant->copy(dst.at, src[0].at, bytes);
            variant->copy_stream(dst.at, src[0].at, bytes);
        }
    }
    for (int i = 0; i < 3; i++)
        munmap(end[i] - page, 2 * page);
}

TEST(nothing_beyond_the_operands_is_touched)
{
    check_edges(&peal_compute_generic);
    for_each_variant(check_edges);
}

static void check_copies(const struct peal_compute *variant)
{
    static char from[3400], to[3400], expected[3400];
    for (int i = 0; i < 4000; i++) {
        size_t bytes = below(i & 2 ? 3000 : 1000), a = below(64), b = below(64);
        fill(from, PEAL_U8, sizeof from);
        memset(to, 0xa5, sizeof to);
        memset(expected, 0xa5, sizeof expected);
        memcpy(expected + GUARD + b, from + GUARD + a, bytes);
        (i & 1 ? variant->copy : variant->copy_stream)(to + GUARD + b, from + GUARD + a, bytes);
        assert_memory_equal(to, expected, sizeof to);
    }
}

TEST(copies_move_exactly_their_bytes)
{
    check_copies(&peal_compute_generic);
    for_each_variant(check_copies);
}

TEST(the_best_variant_is_found_by_its_name)
{
    const struct peal_compute *best = peal_compute_best();
    assert_ptr_equal(peal_compute_find(best->name), best);
    assert_ptr_equal(peal_compute_find("generic"), &peal_compute_generic);
    assert_null(peal_compute_find("abacus"));
}

int main(void)
{
    const char *given = getenv("PEAL_SEED");
    rng_state = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    printf("seed %llu\n", (unsigned long long)rng_state);
    return unit_run();
}
