#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the package peal_torch into BUILD/torch, against the torch of /usr/bin/python3 and the libpeal in BUILD.
#   torch/build.sh BUILD      then: PYTHONPATH=BUILD/torch /usr/bin/python3 script.py
# PEAL_TORCH_OUT: the output folder, if not BUILD/torch
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
out=${PEAL_TORCH_OUT:-$build/torch}
mkdir -p "$out/peal_torch"
cp "$top"/torch/peal_torch/* "$out/peal_torch/"
cd "$top/torch"
if [ -d /usr/lib/ccache ]; then PATH=/usr/lib/ccache:$PATH; fi
PEAL_BUILD=$build /usr/bin/python3 setup.py -q build_ext --build-lib "$out" --build-temp "$out/temp" >"$out/log" 2>&1 || {
    tail -n 30 "$out/log"
    exit 1
}
