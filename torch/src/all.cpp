// SPDX-License-Identifier: Apache-2.0
// The whole extension in one translation unit: torch's headers take most of the compile time, and are read only once.
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
