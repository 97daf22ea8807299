! SPDX-License-Identifier: Apache-2.0
program flavour_h
    implicit none
    include 'mpif.h'
    integer :: r(3)
    include 'body.inc'
    include 'started.inc'
end program
