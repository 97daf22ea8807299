# SPDX-License-Identifier: Apache-2.0
"""Builds the PyTorch backend against the installed torch and libpeal.

libpeal is found by pkg-config, or in the build folder that PEAL_BUILD names (headers beside it in the source tree).
"""
import glob
import os
import subprocess

from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = os.path.dirname(os.path.abspath(__file__))


def peal():
    build = os.environ.get("PEAL_BUILD")
    if build:
        build = os.path.abspath(build)
        return [os.path.join(here, "..", "include")], ["-L" + build, "-lpeal", "-Wl,-rpath," + build]
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "peal"], check=True, capture_output=True, text=True)
    words = flags.stdout.split()
    return [w[2:] for w in words if w.startswith("-I")], [w for w in words if not w.startswith("-I")]


include, link = peal()
setup(
    name="peal_torch",
    version="0.2.0",
    license="Apache-2.0",
    packages=["peal_torch"],
    ext_modules=[
        CppExtension(
            "peal_torch._C",
            sorted(glob.glob("src/*.cpp")),
            include_dirs=include,
            extra_compile_args=["-O2", "-std=c++17"],
            extra_link_args=link,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
