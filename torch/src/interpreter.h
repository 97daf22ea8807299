// SPDX-License-Identifier: Apache-2.0
// Python's interpreter. torch calls some functions with it in hand: whoever waits lets go of it, because a thread that is
// waited for may need it. While a rank waits, Python cannot run its signal handlers: the wait asks for them. And what runs in the
// background must end before the interpreter does.
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

// How often a wait asks for them.
const std::chrono::milliseconds SIGNAL_CHECK(100);
// Runs the handlers of signals that have come. What one of them raised, such as KeyboardInterrupt, or null. Only in the main
// thread, where Python runs them; null elsewhere. Not with the interpreter in hand.
std::exception_ptr raised_by_signal();
// A wait inside peal's call cannot raise it: it is kept until the thread is out of that call. Python's errors can be raised once,
// so the work, whose failure others may see too, has an error of its own.
void keep_for_this_thread(std::exception_ptr raised);
// Raises what was kept, once.
void raise_kept();

// Functions to be called when Python ends, each once, or not at all if it is removed before.
namespace at_exit {
uint64_t add(std::function<void()> end);
void remove(uint64_t id);
void run();
} // namespace at_exit

// How often this process has been forked since its first ancestor was: threads and locks of before are not here.
unsigned forks();

} // namespace peal
