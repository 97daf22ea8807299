/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of a prefault pool: zeroed, apart, bounded; its first block stays. */
#include "base/tests/unit.h"
#include "run/team/memory/prefault.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Zeroed, aligned, and apart from each other, even in memory that was used before. */
TEST(pieces_are_clean_and_apart)
{
    enum { PIECES = 200 };
    struct peal_prefault prefault;
    unsigned char *pieces[PIECES];
    peal_prefault_init(&prefault, 8192, 4096);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < PIECES; i++) {
            size_t bytes = i * 37 % 9000;
            pieces[i] = peal_prefault_take(&prefault, bytes);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % 64, 0);
            for (size_t k = 0; k < bytes; k++)
                assert_int_equal(pieces[i][k], 0);
            memset(pieces[i], (int)i % 255 + 1, bytes);
        }
        for (size_t i = 0; i < PIECES; i++) {
            for (size_t k = 0; k < i * 37 % 9000; k++)
                assert_int_equal(pieces[i][k], i % 255 + 1);
        }
        peal_prefault_empty(&prefault);
    }
    peal_prefault_release(&prefault);
}

/* The first block is kept when the pool is emptied, and is used again. */
TEST(the_first_block_is_kept)
{
    struct peal_prefault prefault;
    peal_prefault_init(&prefault, 8192, 4096);
    char *first = peal_prefault_take(&prefault, 64);
    for (int i = 0; i < 100; i++)
        assert_non_null(peal_prefault_take(&prefault, 1000));
    peal_prefault_empty(&prefault);
    assert_ptr_equal(peal_prefault_take(&prefault, 64), first);
    peal_prefault_release(&prefault);
}

TEST(too_much_is_refused)
{
    struct peal_prefault prefault = {0};
    assert_null(peal_prefault_take(&prefault, SIZE_MAX));
    assert_null(peal_prefault_take(&prefault, SIZE_MAX / 2));
    assert_non_null(peal_prefault_take(&prefault, 1)); /* makes its first block by itself */
    peal_prefault_release(&prefault);
    peal_prefault_release(&prefault);
}

int main(void)
{
    return unit_run();
}
