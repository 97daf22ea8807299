# SPDX-License-Identifier: Apache-2.0
"""The features of torch.distributed that programs use, each with Peal and with Gloo, on the installed torch.

    /usr/bin/python3 torch/tests/features.py [--world 2] [--only NAME,NAME] [--backend peal,gloo] [--out rows.json]

Each feature runs in new processes for each backend. A verdict is "yes", "no: TYPE: first line of the error" or "not in this torch".
Peal's must be "yes" wherever Gloo's is; where both are "no", the error is torch's own.
"""
import argparse
import datetime
import json
import os
import sys
import tempfile
import traceback

import feature_calls  # noqa: F401
import feature_models  # noqa: F401
from common import dist, mp, torch
from feature_table import FEATURES, Absent

SECONDS = 90


def run_one(rank, world, folder, backend, name):
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    try:
        dist.init_process_group(backend, init_method=f"file://{folder}/{backend}-{name}", rank=rank, world_size=world,
                                timeout=datetime.timedelta(seconds=SECONDS))
        FEATURES[name](rank, world)
        if dist.is_initialized():
            dist.barrier()
        verdict = "yes"
    except Absent as error:
        verdict = f"not in this torch: {error}"
    except BaseException as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
        verdict = f"no: {type(error).__name__}: {lines[0][:200]}"
        with open(f"{folder}/trace-{backend}-{name}-{rank}", "w") as file:
            file.write(traceback.format_exc())
    with open(f"{folder}/{backend}-{name}-{rank}.txt", "w") as file:
        file.write(verdict)
    sys.stdout.flush()
    os._exit(0)  # a group in which a rank has failed may not end by itself


def verdict_of(world, folder, backend, name):
    context = mp.start_processes(run_one, args=(world, folder, backend, name), nprocs=world, join=False, start_method="fork")
    for process in context.processes:
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
    verdicts = []
    for rank in range(world):
        try:
            with open(f"{folder}/{backend}-{name}-{rank}.txt") as file:
                verdicts.append(file.read())
        except OSError:
            verdicts.append("no: hangs or died")
    bad = [verdict for verdict in verdicts if verdict != "yes"]
    return bad[0] if bad else "yes"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--backend", default="peal,gloo")
    parser.add_argument("--out")
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(FEATURES)
    rows = {}
    with tempfile.TemporaryDirectory(prefix="peal-features-") as folder:
        for name in names:
            rows[name] = {backend: verdict_of(arguments.world, folder, backend, name) for backend in arguments.backend.split(",")}
            print(f"{name:36} " + "  ".join(f"{backend}: {verdict}" for backend, verdict in rows[name].items()), flush=True)
    worse = [name for name, row in rows.items() if row.get("gloo") == "yes" and row.get("peal", "yes") != "yes"]
    counts = {backend: sum(row[backend] == "yes" for row in rows.values()) for backend in arguments.backend.split(",")}
    print(f"torch {torch.__version__}: {len(rows)} features; " + ", ".join(f"{backend} {n}" for backend, n in counts.items()))
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({"torch": torch.__version__, "world": arguments.world, "rows": rows}, file, indent=1)
    if worse:
        sys.exit("worse than Gloo: " + ", ".join(worse))


if __name__ == "__main__":
    main()
