! SPDX-License-Identifier: Apache-2.0
program flavour_f08
    use mpi_f08
    implicit none
    type(mpi_request) :: r(3)
    include 'body.inc'
    include 'started.inc'
end program
