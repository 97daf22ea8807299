#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a source archive of the PyTorch backend and a wheel with libpeal inside, for the python3 and torch of this system.
#   torch/wheel.sh BUILD OUT
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
out=$(cd "$2" && pwd)
python=${PEAL_PYTHON:-/usr/bin/python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# In a copy, because setuptools writes into the source folder.
mkdir "$scratch/include"
cp -r "$top/torch" "$scratch/torch"
cp -r "$top/include/peal" "$scratch/include/peal"
cd "$scratch/torch"
export PEAL_BUILD=$build PEAL_BUNDLE=1
if [ -d /usr/lib/ccache ]; then PATH=/usr/lib/ccache:$PATH; fi
if ! "$python" setup.py -q sdist --dist-dir "$out" bdist_wheel --dist-dir "$out" >"$scratch/log" 2>&1; then
    tail -n 30 "$scratch/log"
    exit 1
fi
cd "$out"
ls peal_torch-*.whl peal_torch-*.tar.gz peal-torch-*.tar.gz 2>/dev/null | sort
