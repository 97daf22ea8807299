# SPDX-License-Identifier: Apache-2.0
"""Builds the PyTorch backend against the installed torch and libpeal; pyproject.toml has the rest.

libpeal is found by pkg-config, or in the build folder PEAL_BUILD (its headers are in the source tree). PEAL_BUNDLE=1 puts that
libpeal and the libraries that it needs, except the C library, into the package, for a wheel that needs nothing but torch.
"""
import glob
import os
import shutil
import subprocess

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

here = os.path.dirname(os.path.abspath(__file__))
build = os.path.abspath(os.environ["PEAL_BUILD"]) if os.environ.get("PEAL_BUILD") else None
bundle = os.environ.get("PEAL_BUNDLE") == "1"


def peal():
    """Folders of headers, and linker arguments."""
    if build:
        # Old tags, so that the libraries that libpeal needs are searched for there too.
        path = "-Wl,--disable-new-dtags,-rpath,$ORIGIN" if bundle else "-Wl,-rpath," + build
        return [os.path.join(here, "..", "include")], ["-L" + build, "-lpeal", path]
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "peal"], check=True, capture_output=True, text=True)
    words = flags.stdout.split()
    return [w[2:] for w in words if w.startswith("-I")], [w for w in words if not w.startswith("-I")]


C_LIBRARY = ("linux-vdso", "ld-linux", "libc.", "libm.", "libdl.", "libpthread.", "librt.", "libgcc_s.")


def needed(library):
    """The libraries that this one needs: their paths by name."""
    lines = subprocess.run(["ldd", library], check=True, capture_output=True, text=True).stdout.splitlines()
    pairs = [line.split() for line in lines if "=>" in line]
    return {words[0]: words[2] for words in pairs if len(words) > 2 and words[2].startswith("/")}


class Build(BuildExtension):
    def run(self):
        super().run()
        if not bundle:
            return
        package = os.path.join(self.build_lib, "peal_torch")
        library = os.path.realpath(os.path.join(build, "libpeal.so"))
        found = {name: path for name, path in needed(library).items() if not name.startswith(C_LIBRARY)}
        found["libpeal.so.0"] = library
        for name, path in found.items():
            shutil.copy(path, os.path.join(package, name))


include, link = peal()
# torch's build chooses the C++ standard that its headers need; that of 1.13 is too old for this source.
standard = [] if int(torch.__version__.split(".")[0]) >= 2 else ["-std=c++17"]
setup(
    ext_modules=[
        CppExtension(
            "peal_torch._C",
            ["src/all.cpp"],
            depends=sorted(glob.glob("src/*")),
            include_dirs=include,
            extra_compile_args=["-O2", "-g0"] + standard,
            extra_link_args=link,
        )
    ],
    cmdclass={"build_ext": Build},
)
