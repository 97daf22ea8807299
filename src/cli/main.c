/* SPDX-License-Identifier: Apache-2.0 */
/* peal: one command a file. */
#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc == 2 && argv[1][0] == '-')
        printf("peal 0.1.0\n");
    return 0;
}
