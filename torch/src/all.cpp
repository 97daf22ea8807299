// SPDX-License-Identifier: Apache-2.0
// All of the extension as one file: torch's headers take longer to compile than everything else, and are read once so.
#include "comm.cpp"
#include "group.cpp"
#include "interpreter.cpp"
#include "messages.cpp"
#include "module.cpp"
#include "monitored.cpp"
#include "queue.cpp"
#include "sparse.cpp"
#include "translate.cpp"
#include "turns.cpp"
#include "work.cpp"
