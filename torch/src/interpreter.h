// SPDX-License-Identifier: Apache-2.0
// What the backend has to do about Python's interpreter:
//   - torch calls some functions while it holds the interpreter's lock. Functions that wait release it, because the thread that
//     they wait for may need it.
//   - Python runs signal handlers between two instructions of the main thread, so none runs while a call waits. Waits therefore
//     run them from time to time; an exception of theirs, such as KeyboardInterrupt, ends the wait.
//   - Background threads must end before the interpreter does.
#pragma once

#include <torch/csrc/python_headers.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>

namespace peal {

class WithoutInterpreter {
  public:
    WithoutInterpreter() : state_(Py_IsInitialized() && PyGILState_Check() ? PyEval_SaveThread() : nullptr)
    {
    }
    ~WithoutInterpreter()
    {
        if (state_)
            PyEval_RestoreThread(state_);
    }
    WithoutInterpreter(const WithoutInterpreter &) = delete;
    WithoutInterpreter &operator=(const WithoutInterpreter &) = delete;

  private:
    PyThreadState *state_;
};

// How often a wait runs signal handlers.
const std::chrono::milliseconds SIGNAL_CHECK(100);
// Runs the handlers of pending signals and returns the exception that one of them raised, or null. Null in all threads but the
// main one. The caller must not hold the interpreter's lock.
std::exception_ptr raised_by_signal();
// An exception cannot cross libpeal, so one that is raised during a wait there is kept until the thread has left that call. It can
// be raised only once, so it is not the error of the work, which other threads may see too.
void keep_for_this_thread(std::exception_ptr raised);
// Raises this thread's kept exception, if there is one.
void raise_kept();

// Functions that are called when Python ends, unless they are removed before.
namespace at_exit {
uint64_t add(std::function<void()> end);
void remove(uint64_t id);
void run();
} // namespace at_exit

// The number of forks between this process and the one that loaded the backend. An object that was made at another number belongs
// to a parent: its threads do not exist here, and its locks may be taken for ever.
unsigned forks();

} // namespace peal
