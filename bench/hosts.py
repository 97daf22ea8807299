# SPDX-License-Identifier: Apache-2.0
"""Hosts for compare: namespaces on this machine, and the commands that start each system on them.

Each host has its own network, name, processes and /dev/shm. A virtual link (d0) joins them for data, limited by --rate; another one
(m0) leads to the launcher. The machine's own network is not changed, and the hosts end with the benchmark's processes, however
it ends.
"""
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from systems import MALLOC, PROCESSORS, System

INSIDE = "PEAL_BENCH_HOSTS_INSIDE"
HOSTS = 2
NAMES = [f"10.78.0.{i + 1}" for i in range(HOSTS)]  # the launchers' names: no resolver is needed


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def sure(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}")


def enter(refuse=sys.exit):
    """Restarts the program in its own network namespace, or calls refuse with a message if that is not allowed."""
    if INSIDE in os.environ:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the hosts are closed
        return
    command = ["unshare", "--net", "--mount"] + ([] if os.geteuid() == 0 else ["--user", "--map-root-user"])
    probe = subprocess.run([*command, "sh", "-c", "ip link set lo up && ip link add name va type veth peer name vb && ip link add br0 type bridge"],
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if probe.returncode:
        refuse(f"network namespaces are not allowed here: {probe.stdout.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp(command[0], command + [sys.executable] + sys.argv)


class Hosts:
    """Two hosts, and a program, `via`, that runs a command on one of them and is called like ssh."""

    def __init__(self, rate=None):
        self.folder = tempfile.mkdtemp(prefix="peal-bench-hosts-")
        self.holders = []
        sure("ip", "link", "set", "lo", "up")
        sure("ip", "link", "add", "br0", "type", "bridge")
        sure("ip", "addr", "add", "10.78.0.254/24", "dev", "br0")
        sure("ip", "link", "set", "br0", "up")
        with open(f"{self.folder}/names", "w", encoding="ascii") as file:
            file.write(f"127.0.0.1 localhost\n10.78.0.254 {os.uname().nodename}\n" +
                       "".join(f"{name} h{i}\n" for i, name in enumerate(NAMES)))
        sure("mount", "--bind", f"{self.folder}/names", "/etc/hosts")  # in the mounts of this process only
        pids = [self.start(i) for i in range(HOSTS)]
        sure("ip", "link", "add", "d0", "netns", pids[0], "type", "veth", "peer", "name", "d0", "netns", pids[1])
        for i, pid in enumerate(pids):
            sure("ip", "link", "add", f"m{i}", "type", "veth", "peer", "name", "m0", "netns", pid)
            sure("ip", "link", "set", f"m{i}", "master", "br0", "up")
            inside = ["nsenter", "-t", pid, "-n", "--"]
            for name, address in (("d0", f"10.77.0.{i + 1}/24"), ("m0", f"{NAMES[i]}/24")):
                sure(*inside, "ip", "addr", "add", address, "dev", name)
                sure(*inside, "ip", "link", "set", name, "up")
            if rate:
                sure(*inside, "tc", "qdisc", "add", "dev", "d0", "root", "tbf", "rate", rate, "burst", "1mb", "latency", "50ms")
        self.via = f"{self.folder}/via"
        with open(self.via, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n# As ssh is called: options, a host, a command.\n"
                       "while case $1 in -*) true ;; *) false ;; esac; do shift; done\n"
                       f"pid=$(cat {self.folder}/$1)\nshift\nexec nsenter -t $pid -m -u -i -n -p --wd=/ -- sh -c \"$*\"\n")
        os.chmod(self.via, 0o755)

    def start(self, number):
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                                   f"hostname h{number} && mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm && "
                                   "mount -t sysfs sysfs /sys; ip link set lo up && echo up && exec sleep 100000"],
                                  stdout=subprocess.PIPE, text=True, preexec_fn=die_with_parent)
        self.holders.append(holder)
        if holder.stdout.readline() != "up\n":
            sys.exit(f"host {number} does not start")
        with open(f"/proc/{holder.pid}/task/{holder.pid}/children", encoding="ascii") as file:
            pid = file.read().split()[0]
        with open(f"{self.folder}/{NAMES[number]}", "w", encoding="ascii") as file:
            file.write(pid)
        return pid

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def spread(ranks):
    return ",".join(f"{name}:{ranks // HOSTS}" for name in NAMES)


def settings(env):
    return ["env", *(f"{name}={value}" for name, value in env.items())]


def open_mpi(folder, hosts):
    """Over TCP with its own engine, the same with two-level collectives (HAN), and over UCX."""
    def start(env, *words):
        def command(ranks):
            yields = ["--mca", "mpi_yield_when_idle", "1"] if ranks > PROCESSORS else []
            return ["mpirun.openmpi", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "--bind-to", "none", "--map-by", "slot",
                    "--mca", "plm_rsh_agent", hosts.via, "--mca", "oob_tcp_if_include", "10.78.0.0/24", *yields, *words,
                    "-H", spread(ranks), "-np", str(ranks), *settings({**MALLOC, **env}), f"{folder}/mpi-openmpi"]
        return command

    ob1 = ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "d0"]
    ucx = ["--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]
    yield System("Open MPI", "Open MPI", start({}, *ob1))
    yield System("Open MPI, HAN", "Open MPI", start({}, *ob1, "--mca", "coll_han_priority", "100"))
    yield System("Open MPI, UCX", "Open MPI", start({"UCX_TLS": "tcp,self,posix,sysv", "UCX_NET_DEVICES": "d0"}, *ucx))


def mpich(folder, hosts):
    """If ranks share processors, it needs the preload that yields (yield.c)."""
    def start(ranks):
        env = {**MALLOC, "UCX_TLS": "tcp,self,posix,sysv", "UCX_NET_DEVICES": "d0"}
        if ranks > PROCESSORS:
            env["LD_PRELOAD"] = f"{folder}/yield.so"
        return ["mpirun.mpich", "-launcher", "ssh", "-launcher-exec", hosts.via, "-hosts", ",".join(NAMES), "-ppn",
                str(ranks // HOSTS), "-n", str(ranks), *settings(env), f"{folder}/mpi-mpich"]

    yield System("MPICH", "MPICH", start)


def started_by_peal(folder, hosts, program, env):
    peal = os.path.join(os.path.dirname(os.path.abspath(folder)), "peal")
    agent = " ".join([hosts.via, "{host}", *settings(env)])
    return lambda ranks: [peal, "exec", "--no-bind", "--hosts", spread(ranks), "--via", agent, program]


def gloo(folder, hosts):
    for way, collectives in (("ring", ["allreduce", "allgather", "broadcast", "all_to_all", "barrier"]), ("bcube", ["allreduce"])):
        env = {"BENCH_GLOO": way, "BENCH_IFACE": "d0", "BENCH_STORE": tempfile.mkdtemp(dir=hosts.folder)}
        yield System(f"Gloo, {way}", "Gloo", started_by_peal(folder, hosts, f"{folder}/gloo", env), None, None, collectives)


def installed(folder, hosts):
    """Peal, and all rivals whose program was built and whose launcher is installed."""
    folder = os.path.abspath(folder)
    found = [System("Peal", "Peal", started_by_peal(folder, hosts, f"{folder}/bench-peal", {"PEAL_NET": "tcp:d0"}))]
    for name, program, launcher, make in (("Open MPI", "mpi-openmpi", "mpirun.openmpi", open_mpi),
                                          ("MPICH", "mpi-mpich", "mpirun.mpich", mpich), ("Gloo", "gloo", None, gloo)):
        if os.path.exists(f"{folder}/{program}") and (not launcher or shutil.which(launcher)):
            found += make(folder, hosts)
        else:
            print(f"without {name}: {folder}/{program} was not built or cannot be started; see 'make bench'", file=sys.stderr)
    return found
