// SPDX-License-Identifier: Apache-2.0
// torch calls some functions with Python's interpreter in hand. Whoever waits lets go of it, if it has it: who is waited for
// may need it.
#pragma once

#include <torch/csrc/python_headers.h>

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

} // namespace peal
