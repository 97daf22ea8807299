# SPDX-License-Identifier: Apache-2.0
"""What 'peal verify' answers about programs with tile kernels: for how many calls, whose line, which program and call, what would fix it."""
import json
import os
import tempfile
import unittest

import tile_command
from peal.tiles.calls import fold


# A push allreduce: each rank writes into a box of each peer, sets a flag there, and waits for its own.
PUSH = '''
import peal
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import triton
import triton.language as tl


@triton.jit
def of_rank(table, rank, dtype: tl.constexpr):
    return tl.load(table.to(tl.pointer_type(tl.uint64)) + rank).to(tl.pointer_type(dtype))


@triton.jit
def push(x, y, boxes, flags, n, epoch, slot, rank: tl.constexpr, world: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * world
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mine = tl.load(x + at, mask=at < n)
    for peer in range(world):
        tl.store(of_rank(boxes, peer, tl.float32) + (slot * world + rank) * n + at, mine, mask=at < n)  # the store
        tl.atomic_xchg(of_rank(flags, peer, tl.int32) + first + rank, epoch, sem="release", scope="sys")  # the signal
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for peer in range(world):
        while tl.atomic_add(of_rank(flags, rank, tl.int32) + first + peer, 0, sem="acquire", scope="sys") < epoch:  # the wait
            pass
        total += tl.load(of_rank(boxes, rank, tl.float32) + (slot * world + peer) * n + at, mask=at < n)  # the load
    tl.store(y + at, total, mask=at < n)


dist.init_process_group("nccl")
rank, world, n = dist.get_rank(), dist.get_world_size(), 100
box = symm_mem.empty(2 * world * n, dtype=torch.float32, device="cuda")
boxes = symm_mem.rendezvous(box, dist.group.WORLD).buffer_ptrs_dev
flag = symm_mem.empty(2 * world, dtype=torch.int32, device="cuda")
flags = symm_mem.rendezvous(flag, dist.group.WORLD).buffer_ptrs_dev
flag.zero_()
dist.barrier()
x = torch.randn(n, dtype=torch.float32, device="cuda")
y = torch.empty(n, dtype=torch.float32, device="cuda")
peal.expect(y, sum(peal.of_ranks(x)))
for call in peal.calls():
    push[(2,)](x, y, boxes, flags, n, call + 1, call % 2, rank=rank, world=world, BLOCK=64)
'''


def line_of(text, mark):
    """The number of the line that has the mark."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if mark in line)


class Calls(unittest.TestCase):
    def test_calls_that_are_alike(self):
        for calls, period in (
                ([["notify 0x10 4 set 1 release", "join"], ["notify 0x10 4 set 2 release", "join"], ["notify 0x10 4 set 3 release", "join"]], 1),
                ([["wait 0x10 4 >= 7", "join"], ["wait 0x10 4 >= 7", "join"]], 1),
                ([["copy a b", "join"], ["copy c b", "join"]] * 2, 2),
                ([["copy a b", "join"], ["copy c b", "join"]] * 2 + [["copy a b", "join"]], 2),
                ([["copy a b", "join"], ["copy c b", "join"]] * 2 + [["copy c b", "join"]], None),
                ([["notify 0x10 4 set 1 release", "join"], ["notify 0x10 4 set 2 release", "join"], ["notify 0x10 4 set 4 release", "join"]], None),
                ([["notify 0x10 4 set 1 release", "join"], ["notify 0x20 4 set 2 release", "join"]], None),
                ([["notify 0x10 4 set 1 release", "join"], ["notify 0x10 4 add 2 release", "join"]], None),
                ([["copy a b"], ["copy a b"]], None),  # the lanes of a rank do not meet
                ([["copy a b", "join"]], None)):
            found = fold([calls])
            self.assertEqual(found and found.period, period, calls)

    def test_values_rise_by_what_they_rose(self):
        found = fold([[[f"wait 0x10 4 >= {5 + 3 * call} acquire", "join"] for call in range(3)]])
        self.assertEqual(found.ranks, [["call 1", "wait 0x10 4 >= 5+3*launch acquire", "join"]])
        self.assertTrue(found.rises)

    def test_all_ranks_have_one_period(self):
        alike, turned = [["copy a b", "join"]] * 4, [["copy a b", "join"], ["copy c b", "join"]] * 2
        found = fold([alike, turned])
        self.assertEqual(found.period, 2)
        self.assertEqual(found.ranks[0], ["call 1", "copy a b", "join", "call 2", "copy a b", "join"])


@unittest.skipUnless(tile_command.COMMAND, "PEAL_COMMAND is not set")
class Answers(unittest.TestCase):
    def verify(self, text, *options, command="verify"):
        answer = tile_command.run_text(command, text, *options)
        self.files, self.folded = answer.files, answer.folded
        return answer.said

    def test_for_how_many_calls(self):
        one_box = PUSH.replace("call % 2", "0")
        for text, options, words in (
                (one_box, ("--between", "barrier"), "proved for any number of calls at 2 ranks"),
                (PUSH, (), "proved for any number of calls at 2 ranks"),               # two boxes in turn: period 2
                (one_box, (), "refuted: race at 2 ranks"),
                (one_box, ("--calls", "1"), "proved for 1 call at 2 ranks"),
                (one_box.replace("call + 1", "1"), (), "refuted: race at 2 ranks"),    # the flag of the first call is still there
                (one_box.replace("call + 1", "[1, 2, 5][call]"), ("--between", "barrier"), "proved for 3 calls at 2 ranks")):
            said = self.verify(text, "-n", "2", *options)
            self.assertIn(words, said)

    def test_a_loop_goes_on_until_calls_are_alike(self):
        for loop, words in (("range(3)", "proved for any number of calls"),      # two boxes in turn: period 2, seen twice in four calls
                            ("range(0, 6, 2)", "refuted"),                       # always the first box
                            ("[0, 1, 2]", "proved for 3 calls at 2 ranks"),
                            ("range(3)[:2]", "proved for any number of calls")):
            self.assertIn(words, self.verify(PUSH.replace("peal.calls()", loop), "-n", "2"), loop)
        text = PUSH.replace("peal.calls()", "range(3)").replace("call % 2", "[0, 1, 0][call]")  # there is no fourth call
        self.verify(text, "-n", "2")
        self.assertIn("proved for 3 calls at 2 ranks", self.folded)
        self.assertIn("for 3 calls only: ", self.folded)

    def test_why_it_is_for_some_calls_only(self):
        text = PUSH.replace("call % 2", "0").replace("call + 1", "[1, 2, 5][call]")
        self.verify(text, "-n", "2", "--between", "barrier")
        self.assertIn(f"for 3 calls only: call 2 does not do what call 1 does: run.py:{line_of(text, '# the signal')}", self.folded)

    def test_several_numbers_of_ranks(self):
        said = self.verify(PUSH, "-n", "2,4")
        self.assertTrue(said.startswith("run.py: proved for any number of calls at 2, 4 ranks\n"), said)
        self.assertIn("2 files: 2 proved", said)

    def test_what_is_assumed(self):
        self.verify(PUSH, "-n", "2")
        for words in ("result: allreduce, the same bits on all ranks", "model triton-nvidia", "between calls: nothing but what the program does",
                      "assumed: that later calls go on like the 4 that were recorded, with values of flags that rise as they do there",
                      "assumed: that 'flag' is zero on all ranks before a kernel starts on any"):
            self.assertIn(words, self.folded)

    def test_whose_line_program_and_call(self):
        text = PUSH.replace("call % 2", "0")
        self.verify(text, "-n", "2")
        store, load = line_of(text, "# the store"), line_of(text, "# the load")
        self.assertRegex(self.folded, rf"rank \d program \d call 2 writes 'box' of rank \d, elements \d+ to \d+ \(bytes \d+ to \d+\), at run.py:{store}")
        self.assertRegex(self.folded, rf"rank \d program \d call 1 reads 'box' of rank \d, elements \d+ to \d+ \(bytes \d+ to \d+\), at run.py:{load}")
        self.assertLessEqual(max(map(len, self.verify(text, "-n", "2").splitlines())), 80)

    def test_a_wait_that_never_ends(self):
        text = PUSH.replace('+ first + rank, epoch', '+ first + peer, epoch')
        self.verify(text, "-n", "2")
        self.assertRegex(self.folded, rf"rank \d program \d call 1 waits at run.py:{line_of(text, '# the wait')} for flag\[\d\](@\d)? >= 1; it is 0, and no rank")

    def test_a_wrong_result(self):
        text = PUSH.replace("total += ", "total = ")
        self.verify(text, "-n", "2")
        for words in ("refuted: wrong result at 2 ranks", "expected", "obtained", "last written by rank"):
            self.assertIn(words, self.folded)

    def test_what_would_fix_it_is_tried(self):
        signal, wait = line_of(PUSH, "# the signal"), line_of(PUSH, "# the wait")
        one_box = PUSH.replace("call % 2", "0")
        weak = PUSH.replace('sem="acquire"', 'sem="relaxed"'), PUSH.replace('sem="release"', 'sem="relaxed"')
        for text, words, options in (
                (one_box, "a barrier of all ranks between calls (--between barrier)", ()),
                (weak[0], f"sem='acquire' at run.py:{wait}", ()),
                (weak[1], f"sem='release' at run.py:{signal}", ()),
                (weak[1].replace('sem="acquire"', 'sem="relaxed"'), f"sem='release' at run.py:{signal} and sem='acquire' at run.py:{wait}", ()),
                (PUSH.replace('scope="sys")  # the signal', 'scope="gpu")  # the signal'), f"scope='sys' at run.py:{signal}", ()),
                (PUSH.replace("< epoch", "!= epoch"), f"a loop that ends at '>=', not only at '==', at run.py:{wait}", ()),
                (PUSH.replace("flag.zero_()", "pass"), "zeroing 'flag' on all ranks before the first kernel", ())):
            self.verify(text, "-n", "2", *options)
            self.assertIn(f"fix: {words} (tried at 2 ranks: proved)", self.folded)
        for text in (PUSH.replace("total += ", "total = "), PUSH.replace("+ first + rank, epoch", "+ first + peer, epoch"),
                     one_box.replace("call + 1", "1")):
            self.verify(text, "-n", "2")
            self.assertIn("refuted", self.folded)
            self.assertNotIn("fix:", self.folded)

    def test_a_barrier_in_the_kernel(self):
        """Where the host meets already and one launch alone is wrong, the kernel has to."""
        text = PUSH.replace("call % 2", "0").replace("    push[", "    push[(2,)](x, y, boxes, flags, n, 2 * call + 1, 0, rank=rank, world=world, BLOCK=64)\n    push[")
        text = text.replace("n, call + 1, 0", "n, 2 * call + 2, 0")
        self.verify(text, "-n", "2", "--between", "barrier")
        self.assertIn(f"fix: a barrier, in which programs of the same number of all ranks meet, before run.py:{line_of(text, '# the store')} (tried",
                      self.folded)

    def test_contracts_from_outside(self):
        text = "\n".join(line for line in PUSH.splitlines() if "peal.expect" not in line)
        self.verify(text, "-n", "2")
        self.assertIn("races, deadlock and bounds only; the result is not judged", self.folded)
        for implements, words in (
                ("allreduce", "'x' is the input, 'y' the output"),  # found out
                ("all_reduce:x,y", "'x' is the input, 'y' the output"),
                ("allreduce:box", "refuted: wrong result"),
                ("allgather", "allgather asks"),
                ("allreduce:x,z", "the kernels use no tensor 'z'; they use box, x, y"),
                ("allreduce:x,y,box", "allreduce:INPUT,OUTPUT is wanted, of box, x, y")):
            self.verify(text, "-n", "2", "--implements", implements)
            self.assertIn(words, self.folded)
        two = text.replace("y = torch.empty(n", "z = torch.randn(n, dtype=torch.float32, device='cuda')\ny = torch.empty(n")
        two = two.replace("def push(x, y,", "def push(x, y, z,").replace("push[(2,)](x, y,", "push[(2,)](x, y, z,").replace(
            "tl.load(x + at, mask=at < n)", "tl.load(x + at, mask=at < n) + tl.load(z + at, mask=at < n)")
        self.verify(two, "-n", "2", "--implements", "allreduce")
        self.assertIn("of which tensors? kernels only read x, z; kernels only write y; kernels read and write box", self.folded)

    def test_other_commands(self):
        """What is proved runs: flags that rise hold for every launch."""
        for command, options, words in (
                ("run", ("-n", "2"), "allreduce: right"),
                ("sim", ("-n", "2", "-m", "mesh4x4"), "data full: the result is what the contract says"),
                ("plan", ("-n", "2", "--rank", "0"), "notify flag[0] = 2 * launch + 1"),
                ("export", ("-n", "2", "--to", "msccl"), "only one-writer signals of one launch")):
            self.verify(PUSH, *options, command=command)
            self.assertIn(words, self.folded)

    def test_what_cannot_be_read_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "dir.py"))
            for name, why in ("none.py", "No such file or directory"), ("dir.py", "Is a directory"):
                for command in "verify", "plan", "run":
                    answer = tile_command.run(command, name, "-n", "2", folder=folder)
                    self.assertEqual(answer.code, 3)
                    self.assertEqual(answer.folded.strip(), f"peal {command}: cannot read '{name}': {why}")

    def test_what_the_program_prints_is_printed_once_for_each_rank(self):
        said = self.verify(PUSH + "print('rank', rank, 'is done')\n", "-n", "3")
        for rank in range(3):
            self.assertEqual(said.count(f"rank {rank} is done"), 1, said)

    def test_one_rank_is_one(self):
        self.assertIn("at 1 rank\n", self.verify(PUSH, "-n", "1"))
        self.assertIn("at 1, 2 ranks\n", self.verify(PUSH, "-n", "1,2"))

    def test_what_is_not_done_is_said(self):
        self.verify(PUSH, "run.py")
        self.assertIn("in Python are verified one at a time", self.folded)

    def test_json(self):
        answer = json.loads(self.verify(PUSH, "-n", "2", "--json"))["files"][0]
        self.assertEqual((answer["calls"], answer["calls_per_launch"], answer["runs"][0]["proved"]), (3, 2, "for any number of calls"))
        run = json.loads(self.verify(PUSH.replace("call % 2", "0"), "-n", "2", "--json"))["files"][0]["runs"][0]
        self.assertEqual(len(run["steps_of"]), len(run["answer"]["steps"]))
        self.assertEqual({step["call"] for step in run["steps_of"]}, {1, 2})
        self.assertIn("program 0", {step["lane"] for step in run["steps_of"]})

    def test_pages_and_sarif(self):
        text = PUSH.replace("call % 2", "0")
        self.verify(text, "-n", "2", "--html", "page.html", "--sarif", "out.sarif")
        self.assertIn("# the store", self.files["page.html"])
        results = json.loads(self.files["out.sarif"])["runs"][0]["results"]
        place = results[0]["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"]["uri"], "run.py")
        self.assertIn(place["region"]["startLine"], (line_of(text, "# the store"), line_of(text, "# the load")))

    def test_a_program_gets_its_arguments(self):
        text = "import sys\nassert sys.argv[1:] == ['--size', '64', 'a \\'b', ''], sys.argv\n" + PUSH.replace(", 100\n", ", int(sys.argv[2])\n")
        answer = tile_command.run_text("plan", text, "-n", "2", "--args", "--size 64\t\"a 'b\" ''")
        self.assertIn("parameter x: f32[64]", answer.out, answer.said)


if __name__ == "__main__":
    unittest.main()
