# SPDX-License-Identifier: Apache-2.0
"""The systems that compare measures: how each is started, and which settings are fair to it.

A system is a rival (one of several settings of one library), Peal, or the limit. All of them run the harness of
harness.h, or print the same lines of JSON.
"""
import json
import os
import shutil
import signal
import subprocess
import sys

PROCESSORS = len(os.sched_getaffinity(0))

# Temporaries of tens of megabytes would otherwise be mapped and unmapped in every call.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "1073741824", "MALLOC_TRIM_THRESHOLD_": "1073741824"}


class Processors:
    """Do two processors share a cache at the moment? Found by the round trip of a cache line between them. The host of a
    virtual machine may move its processors apart, and copies between ranks then take several times as long."""

    FAR = 3  # times the lowest round trip seen; with two caches instead of one it was 5 times as long

    def __init__(self, folder):
        self.program = f"{folder}/bench-cores"
        self.lowest = None
        if PROCESSORS < 2 or not os.path.exists(self.program):
            self.program = None

    def are_apart(self):
        if not self.program:
            return False
        out = subprocess.run([self.program], stdout=subprocess.PIPE, text=True, check=True).stdout
        return self.judge(json.loads(out)["round_trip_ns"])

    def judge(self, round_trip_ns):
        self.lowest = min(self.lowest or round_trip_ns, round_trip_ns)
        return round_trip_ns > self.FAR * self.lowest


class System:
    """One setting of one library. `family` is what the table calls it; a family's best setting counts."""

    def __init__(self, name, family, command, env=None, most_ranks=None, collectives=None):
        self.name = name
        self.family = family
        self.command = command  # function of the number of ranks: the words before the collective
        self.env = env or {}
        self.most_ranks = most_ranks
        self.collectives = collectives  # None: all

    def takes(self, collective, ranks):
        return (self.most_ranks is None or ranks <= self.most_ranks) and (
            self.collectives is None or collective in self.collectives)

    def environment(self, ranks):
        return {**os.environ, **self.env, "BENCH_RANKS": str(ranks)}

    def run(self, collective, ranks, options, seconds):
        """A list of results, and a message if the run failed."""
        words = self.command(ranks) + [collective]
        if self.family == "limit":
            words += [str(ranks)]
        process = subprocess.Popen(words + options, env=self.environment(ranks), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        problem = None
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            out, err = process.communicate()
            problem = f"stopped after {seconds} s"
        if process.returncode and not problem:
            lines = err.strip().splitlines()
            problem = lines[0] if lines else f"exit status {process.returncode}"
        results = []
        for line in out.splitlines():
            if line.startswith("{"):
                results.append({**json.loads(line), "system": self.name, "family": self.family})
        return results, problem


def open_mpi(folder):
    def start(*settings):
        words = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            words.append("--allow-run-as-root")
        for name in MALLOC:
            words += ["-x", name]
        words += list(settings)
        return lambda ranks: words + ["-np", str(ranks), f"{folder}/mpi-openmpi"]

    ucx = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
    family = "Open MPI"
    yield System("Open MPI", family, start(), MALLOC)
    yield System("Open MPI, UCX", family, start(*ucx), MALLOC)
    yield System("Open MPI, no CMA", family, start("--mca", "btl_vader_single_copy_mechanism", "none"), MALLOC)
    # Its spinning collapses with more ranks than processors.
    yield System("Open MPI, coll sm", family, start("--mca", "coll_sm_priority", "100"), MALLOC, PROCESSORS)


def mpich(folder):
    def start(ranks):
        return ["mpirun.mpich", "-np", str(ranks), f"{folder}/mpi-mpich"]

    yield System("MPICH", "MPICH", start, MALLOC, PROCESSORS)
    yield System("MPICH, yielding", "MPICH", start, {**MALLOC, "LD_PRELOAD": f"{folder}/yield.so"})


def gloo(folder):
    def start(_):
        return [f"{folder}/gloo"]

    without_reduce_scatter = ["allreduce", "allgather", "broadcast", "all_to_all", "barrier"]
    yield System("Gloo, ring", "Gloo", start, {"BENCH_GLOO": "ring"}, None, without_reduce_scatter)
    yield System("Gloo, bcube", "Gloo", start, {"BENCH_GLOO": "bcube"}, None, ["allreduce"])
    yield System("Gloo, busy", "Gloo", start, {"BENCH_GLOO": "busy"}, PROCESSORS,
                 ["allreduce", "allgather", "reduce_scatter", "broadcast", "barrier"])


def peal(folder):
    def start(_):
        return [f"{folder}/bench-peal"]

    yield System("Peal", "Peal", start)
    yield PealBench("peal bench", "peal bench", lambda _: [os.path.join(os.path.dirname(folder), "peal"), "bench"])
    yield System("Peal, symmetric", "Peal, symmetric", start, {"BENCH_SYMMETRIC": "1"})


class PealBench(System):
    """`peal bench`, whose method differs: a cross-check of the harness, measured on request only."""

    def run(self, collective, ranks, options, seconds):
        sizes = options[options.index("-s") + 1].split(",")
        results, problem = [], None
        for fresh in ([], ["--fresh"]):
            for size in sizes if collective != "barrier" else ["8"]:
                words = self.command(ranks) + [collective, "-n", str(ranks), "-b", size, "-e", size, "--json"] + fresh
                try:
                    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds)
                except subprocess.TimeoutExpired:
                    return results, f"stopped after {seconds} s"
                if done.returncode:
                    return results, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[0]
                results += [self.result(r) for r in json.loads(done.stdout) if not r["in_place"]]
        return results, problem

    def result(self, r):
        return {"system": self.name, "family": self.family, "collective": r["collective"], "nranks": r["ranks"],
                "bytes": r["bytes"], "mode": r["buffers"], "median_us": r["time_us"], "right": r["wrong"] == 0}


def limit(folder):
    collectives = ["allreduce", "allgather", "reduce_scatter", "broadcast", "all_to_all", "barrier"]
    yield System("limit", "limit", lambda _: [f"{folder}/bench-limit"], None, None, collectives)


def installed(folder):
    """All systems whose program was built and whose launcher is installed."""
    found = []
    for name, program, launcher, make in (("Open MPI", "mpi-openmpi", "mpirun.openmpi", open_mpi),
                                          ("MPICH", "mpi-mpich", "mpirun.mpich", mpich),
                                          ("Gloo", "gloo", None, gloo), ("Peal", "bench-peal", None, peal),
                                          ("the limit", "bench-limit", None, limit)):
        if os.path.exists(f"{folder}/{program}") and (not launcher or shutil.which(launcher)):
            found += make(folder)
        else:
            print(f"without {name}: {folder}/{program} was not built or cannot be started; see 'make bench'", file=sys.stderr)
    return found


RIVALS = ("Open MPI", "MPICH", "Gloo")
