# SPDX-License-Identifier: Apache-2.0
"""Peal from Python: collectives on arrays, proofs, simulations, and hosts that drive workers.

    Comm        communicators and collectives          verify    a kernel over all schedules
    Host        tensors, domains and tasks             simulate  a kernel on a modelled machine
    kernel      a Python function as a kernel          export    a proved plan for another engine
    record      tile kernels in Python, recorded as they are; peal.ccl (to be imported) has torch-like host code for them

The library is libpeal.so.0; PEAL_LIBRARY names another file. Nothing is compiled. numpy is used where it is installed.
"""
from . import record
from ._library import DTYPES, REDUCTIONS, STATUS, PealError
from .comm import ANY_SOURCE, Comm, Request
from .command import export
from .host import Domain, Function, Host, Task, Tensor
from .onesided import Symmetric
from .simulate import Simulation, simulate
from .trace import Kernel, kernel
from .user import UserKernel
from .verify import Access, Counterexample, Step, Verdict, verify

__version__ = "0.2.0"
__all__ = ["ANY_SOURCE", "Access", "Comm", "Counterexample", "DTYPES", "Domain", "Function", "Host", "Kernel", "PealError", "REDUCTIONS",
           "Request", "STATUS", "Simulation", "Step", "Symmetric", "Task", "Tensor", "UserKernel", "Verdict", "export", "kernel", "record",
           "simulate", "verify"]
