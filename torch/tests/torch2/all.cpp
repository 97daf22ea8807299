// SPDX-License-Identifier: Apache-2.0
// The whole backend in one file, compiled against the declarations of torch 2 beside it.
#include "../../src/comm.cpp"
#include "../../src/group.cpp"
#include "../../src/messages.cpp"
#include "../../src/module.cpp"
#include "../../src/translate.cpp"
#include "../../src/work.cpp"
#if TORCH_VERSION_MAJOR != 2
#error "the installed torch was found first"
#endif
