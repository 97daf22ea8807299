// SPDX-License-Identifier: Apache-2.0
// The header is C++ too: the typed functions, without the generic forms.
#include <shmem.h>

static int word;
static std::complex<double> sums[2];
__extension__ static double _Complex more[2];

int main()
{
    shmem_init();
    int right = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_int_p(&word, 1 + shmem_my_pe(), right);
    shmem_int_wait_until(&word, SHMEM_CMP_NE, 0);
    sums[0] = {1.0, 2.0};
    shmem_complexd_sum_reduce(SHMEM_TEAM_WORLD, &sums[1], &sums[0], 1);
    shmem_complexd_prod_reduce(SHMEM_TEAM_WORLD, &more[1], &more[0], 1); // C's form of them
    bool is_right = __real__ more[1] == 0 && sums[1] == std::complex<double>(shmem_n_pes(), 2.0 * shmem_n_pes()) &&
                    word == 1 + (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
    shmem_finalize();
    return is_right ? 0 : 1;
}
