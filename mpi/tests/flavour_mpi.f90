! SPDX-License-Identifier: Apache-2.0
program flavour_mpi
    use mpi
    implicit none
    integer :: r(3)
    include 'body.inc'
    include 'started.inc'
end program
