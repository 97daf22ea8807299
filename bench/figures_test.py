#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The table's rules: lowest median of the rounds, best setting of any rival, wrong results never count."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import figures  # noqa: E402
import systems  # noqa: E402


def result(system, family, us, size=8, right=True):
    return {"system": system, "family": family, "collective": "allreduce", "nranks": 2, "mode": "hot", "bytes": size,
            "median_us": us, "right": right}


GROUP = ("allreduce", 2, "hot")


class Table(unittest.TestCase):
    def test_the_lowest_round_of_the_best_setting_counts(self):
        cells = figures.Cells([result("Open MPI", "Open MPI", 3), result("Open MPI", "Open MPI", 2),
                               result("MPICH", "MPICH", 2.5), result("Peal", "Peal", 1), result("Peal", "Peal", 4),
                               result("limit", "limit", 0.5)])
        self.assertEqual(cells.rival(GROUP, 8), (2, "Open MPI"))
        self.assertEqual(cells.row(GROUP, 8), ["8", "1.00", "-", "2.00", "Open MPI", "2.00", "0.50", "2.00"])

    def test_wrong_results_are_reported_and_left_out(self):
        cells = figures.Cells([result("Peal", "Peal", 1, right=False), result("MPICH", "MPICH", 2)])
        self.assertEqual(len(cells.wrong), 1)
        self.assertIsNone(cells.time(GROUP, 8, "Peal"))

    def test_a_time_is_steady_if_another_run_met_it(self):
        cells = figures.Cells([result("Peal", "Peal", us) for us in (1.0, 1.3, 1.04)] +
                              [result("MPICH", "MPICH", us) for us in (2.0, 2.2)] + [result("limit", "limit", 0.5)])
        self.assertTrue(cells.is_steady(GROUP, 8, "Peal"))
        self.assertFalse(cells.is_steady(GROUP, 8, "MPICH"))
        self.assertFalse(cells.is_steady(GROUP, 8, "limit"))
        self.assertTrue(figures.steadiness(cells).startswith("1 of 3 times"))

    def test_processors_are_apart_if_a_round_trip_takes_much_longer_than_the_lowest(self):
        processors = systems.Processors("/nowhere")
        self.assertFalse(processors.are_apart())  # it cannot measure, so no run is repeated
        self.assertEqual([processors.judge(ns) for ns in (510, 100, 45, 110, 510, 100)], [False, False, False, False, True, False])
        self.assertEqual(figures.apart_text([result("Peal", "Peal", 1)]), "")
        self.assertTrue(figures.apart_text([{"apart": True}, {"apart": False}]).startswith("1 of 2 results"))

    def test_sizes_are_written_as_people_read_them(self):
        self.assertEqual([figures.size_text(s) for s in (0, 8, 1024, 3 << 20, 1000)], ["0", "8", "1K", "3M", "1000"])

    def test_a_plot_has_a_line_for_each_side(self):
        cells = figures.Cells([result(s, f, us * size, size) for size in (8, 64)
                               for s, f, us in (("Peal", "Peal", 1), ("MPICH", "MPICH", 2), ("limit", "limit", 0.5))])
        picture = figures.svg(cells, GROUP)
        for name in ("Peal", "rival", "limit"):
            self.assertIn(figures.COLORS[name], picture)
        self.assertIsNone(figures.svg(figures.Cells([result("Peal", "Peal", 1)]), GROUP))

    def test_axes_are_labelled_in_units(self):
        self.assertEqual([figures.power_text(10.0 ** p) for p in (-1, 0, 1, 3, 5, 6)],
                         ["100 ns", "1 µs", "10 µs", "1 ms", "100 ms", "1 s"])


class Document(unittest.TestCase):
    def test_measured_cells_take_the_place_of_older_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.csv")
            old = [result("Peal", "Peal", 1), result("MPICH", "MPICH", 3), {**result("Peal", "Peal", 2), "nranks": 4}]
            figures.write_data(path, figures.data_rows(figures.Cells(old)))
            figures.write_data(path, figures.data_rows(figures.Cells([result("Peal", "Peal", 7)])))
            cells = figures.cells_of(figures.read_data(path))
        self.assertEqual(cells.time(GROUP, 8, "Peal"), 7)
        self.assertEqual(cells.rival(GROUP, 8), (None, ""))  # it was not measured again
        self.assertEqual(cells.time(("allreduce", 4, "hot"), 8, "Peal"), 2)

    def test_the_summary_has_means_and_extremes(self):
        cells = figures.Cells([result(s, s, us, size) for size, peal in ((8, 1), (64, 4))
                               for s, us in (("Peal", peal), ("MPICH", 4))])
        self.assertIn("| allreduce | 2.00 (1.00-4.00) |", figures.summary(cells))

    def test_a_section_is_replaced_and_the_rest_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "d.md")
            with open(path, "w") as file:
                file.write("before\n")
            figures.write_section(path, "x", "one")
            figures.write_section(path, "y", "other")
            figures.write_section(path, "x", "two")
            with open(path) as file:
                text = file.read()
        self.assertTrue(text.startswith("before\n"))
        self.assertNotIn("one", text)
        self.assertLess(text.index("two"), text.index("other"))


if __name__ == "__main__":
    unittest.main()
