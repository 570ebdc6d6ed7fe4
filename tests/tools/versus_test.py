#!/usr/bin/env python3
"""bench/versus: its statistics, its commands, and whole runs with systems that only pretend."""
import ast
import importlib.machinery
import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

VERSUS = Path(__file__).resolve().parents[2] / "bench" / "versus"
loader = importlib.machinery.SourceFileLoader("versus", str(VERSUS))
versus = importlib.util.module_from_spec(importlib.util.spec_from_loader("versus", loader))
sys.dont_write_bytecode = True
loader.exec_module(versus)

TINY = json.loads((VERSUS.parent / "lm_losses.json").read_text())["tiny"]


class Statistics(unittest.TestCase):
    def test_quantiles(self):
        self.assertEqual(versus.quantile([3], 0.25), 3)
        self.assertEqual(versus.quantile([2, 1], 0.5), 1.5)
        self.assertEqual(versus.quartiles([5, 1, 4, 2, 3]), [2, 3, 4])
        self.assertEqual(versus.quartiles([1, 2, 3, 4]), [1.75, 2.5, 3.25])

    def test_ratios_are_of_pairs(self):
        pairs = [({"t": 1}, {"t": 2}), ({"t": 9}, {"t": 3}), ({"t": 1}, {}), ({}, {"t": 1})]
        self.assertEqual(versus.ratios(pairs, "t"), [0.5, 3])

    def test_losses_are_held_to_known_ones(self):
        self.assertEqual(versus.loss_fault([1.0, 2.0], [1.0, 2.0], "tiny", "f32"), "")
        self.assertEqual(versus.loss_fault([1.0], [1.0, 2.0], "tiny", "f32"), "")  # fewer steps were run
        self.assertIn("step 2 is 2.100000, not 2", versus.loss_fault([1.0, 2.1], [1.0, 2.0], "tiny", "f32"))
        known, off = [1.0] * 4, [1.0, 1.0, 1.0, 1.00005]
        self.assertEqual(versus.loss_fault(off, known, "small", "f32"), "")
        self.assertNotEqual(versus.loss_fault(off, known, "tiny", "f32"), "")
        self.assertNotEqual(versus.loss_fault(off[::-1], known, "small", "f32"), "")
        self.assertEqual(versus.loss_fault([1.009], [1.0], "small", "bf16"), "")
        self.assertNotEqual(versus.loss_fault([float("nan")], [1.0], "small", "bf16"), "")
        self.assertNotEqual(versus.loss_fault([], [1.0], "small", "f32"), "")


class Commands(unittest.TestCase):
    def options(self, *words):
        return versus.options(["--weft", sys.executable, "--hand", "hand_lm", *words])

    def test_heads_that_do_not_divide_stay_whole(self):
        self.assertEqual(versus.layout_of("model8", "small"), ("all:8", "d_ff:all;vocab:all"))
        self.assertEqual(versus.layout_of("model8", "medium")[1], "heads:all;d_ff:all;vocab:all")
        self.assertEqual(versus.layout_of("1", "small"), ("all:1", ""))

    def test_before_is_another_weft_command(self):
        o = self.options("--before", "/old/weft")
        self.assertEqual(versus.peer_command(o, "before", "2x2"), ["/old/weft", *versus.weft_command(o, "2x2")[1:]])
        self.assertEqual(versus.absent(o, "before"), "no program '/old/weft' (--before)")

    def test_the_hand_written_step_is_where_it_is_built(self):
        self.assertEqual(Path(versus.options(["--weft", sys.executable]).hand), VERSUS.parents[1] / "build/release/bench/hand_lm")
        self.assertIn("add_executable(hand_lm", (VERSUS.parent / "CMakeLists.txt").read_text())

    def test_weft(self):
        words = versus.weft_command(self.options("--weft-args", "--workers 1"), "2x2")
        self.assertEqual(words[words.index("--mesh") + 1], "rows:2 cols:2")
        self.assertEqual(words[words.index("--layout") + 1], "batch:rows heads:cols d_ff:cols vocab:cols")
        self.assertEqual(words[-2:], ["--workers", "1"])
        self.assertNotIn("--mesh", versus.weft_command(self.options(), "1"))
        self.assertIn("--store", versus.weft_command(self.options(), "batch8-store1"))

    def test_the_scripts_of_the_peers_are_found(self):
        o = self.options()
        for peer, script in (("torch", "torch_lm.py"), ("torch-compile", "torch_lm.py"), ("jax", "jax_lm.py"), ("mtf", "mtf_lm.py")):
            words = versus.peer_command(o, peer, "1")
            self.assertIn(str(VERSUS.parent / "peers" / script), words)
            self.assertNotIn("no script", versus.absent(self.options("--python", sys.executable, "--tf-python", sys.executable), peer))

    def test_peers_take_the_words_that_they_are_given(self):
        """Each script's own parser reads the command of every row; the systems themselves need not be there."""
        for peer in ("torch", "jax", "mtf"):
            text = (VERSUS.parent / "peers" / f"{peer}_lm.py").read_text()
            ast.parse(text)
            known = text + (VERSUS.parent / "peers" / "lm_model.py").read_text()
            for dtype in ("f32", "bf16"):
                for row in versus.ROWS:
                    for word in versus.peer_command(self.options("--dtype", dtype), peer, row) or []:
                        if word.startswith("--") and word != "--nproc_per_node":
                            self.assertIn(f'"{word}"', known, (peer, row))

    def test_peers_where_they_can_run(self):
        o = self.options()
        can = {peer: [row for row in versus.ROWS if versus.peer_command(o, peer, row)] for peer in versus.PEERS}
        self.assertEqual(can["hand"], ["1"])
        self.assertEqual(can["torch"], ["1", "batch2", "model2"])
        self.assertEqual(can["torch-compile"], ["1"])
        self.assertEqual(can["jax"], list(versus.ROWS))
        self.assertEqual(can["before"], list(versus.ROWS))
        self.assertEqual(can["weft-1"], [row for row in versus.ROWS if row != "1"])
        narrow = self.options("--dtype", "bf16")
        self.assertIn("--bf16", versus.peer_command(narrow, "torch", "1"))
        self.assertIsNone(versus.peer_command(narrow, "jax", "1"))


def pretender(folder, name, ms, losses=TINY, code=0):
    """A program that prints the numbers of a run."""
    path = Path(folder) / name
    line = json.dumps({"ms_per_step": ms, "ms_min": ms, "peak_rss_mb": 10 * ms, "setup_s": 1, "compile_s": 0.1,
                       "losses10": losses})
    path.write_text(f"#!/bin/sh\necho noise\necho '{line}'\n" if code == 0 else "#!/bin/sh\necho broken >&2\nexit 3\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


class WholeRuns(unittest.TestCase):
    def versus(self, folder, *words):
        return subprocess.run([sys.executable, str(VERSUS), "--config", "tiny", "--rounds", "3", *words], cwd=folder,
                              capture_output=True, text=True, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def test_prints_ratios_and_appends_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--weft", pretender(folder, "weft", 2), "--hand", pretender(folder, "hand", 4), "--peers",
                     "hand,jax", "--python", "/nowhere/python"]
            for count in (1, 2):
                ran = self.versus(folder, *words)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("absent: jax: no interpreter '/nowhere/python' (--python, WEFT_PEERS_PYTHON)", ran.stdout)
                self.assertIn("time     0.500  (0.500 to 0.500, 3 pairs)", ran.stdout)
                lines = (Path(folder) / "versus.jsonl").read_text().splitlines()
                self.assertEqual(len(lines), count)
            line = json.loads(lines[-1])
            self.assertEqual(line["rows"][0]["peers"]["hand"]["ratios"]["memory"], [0.5] * 3)
            self.assertEqual(line["rows"][0]["commands"]["hand"].split()[1:3], ["--config", "tiny"])
            for key in ("date", "commit", "machine", "command"):
                self.assertTrue(line[key])

    def test_wrong_losses_and_failures_are_faults(self):
        with tempfile.TemporaryDirectory() as folder:
            wrong = pretender(folder, "weft", 2, TINY[:3] + [5.0])
            ran = self.versus(folder, "--weft", wrong, "--hand", pretender(folder, "hand", 4, code=3), "--peers", "hand")
            self.assertEqual(ran.returncode, 1)
            self.assertIn("FAULT weft: loss of step 4 is 5.000000", ran.stdout)
            self.assertIn("FAULT hand: exit code 3: broken", ran.stdout)

    def test_refuses_what_makes_no_sense(self):
        for words, said in ((["--rows", "3x3"], "there is no row '3x3'"), (["--peers", "cafe"], "there is no peer 'cafe'"),
                            (["--weft", "/nowhere/weft"], "there is no weft command '/nowhere/weft'"),
                            (["--rounds", "0"], "count from 1")):
            ran = self.versus(".", *words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertIn(said, ran.stderr)


class Cards(unittest.TestCase):
    """bench/versus --device cuda, with systems that only pretend."""

    def pretender(self, folder, name, ms, losses, more=""):
        path = Path(folder) / name
        line = json.dumps({"system": "weft" if name == "weft" else "torch", "variant": "v", "dtype": "bf16", "ms": ms, "peak_gib": ms,
                           "losses10": losses})
        path.write_text(f"#!/bin/sh\n{more}\necho first step done\necho '{line}'\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def versus(self, folder, *words):
        out = Path(folder) / "out.jsonl"
        ran = subprocess.run([sys.executable, str(VERSUS), "--device", "cuda", "--rows", "wide", "--out", str(out), "--cache", "",
                              "--least", "0.1", *words], cwd=folder, capture_output=True, text=True,
                             env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
        return ran, [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []

    def python(self, folder, ms, losses, more=""):
        """An interpreter that says it has all modules, and is each peer."""
        return self.pretender(folder, "python", ms, losses, 'if [ "$1" = -c ]; then exit 0; fi\n' + more)

    def test_pairs_and_ratios(self):
        with tempfile.TemporaryDirectory() as folder:
            ran, lines = self.versus(folder, "--weft", self.pretender(folder, "weft", 9, [7.0, 6.0]), "--rounds", "2", "--python",
                                     self.python(folder, 10, [7.001, 6.001]))
            self.assertEqual(ran.returncode, 0, ran.stderr + ran.stdout)
            self.assertIn("torch v: weft 9.0 ms, peer 10.0 ms, ratio 0.900 (0.900 to 0.900, 2 pairs), memory 0.900", ran.stdout)
            self.assertIn("bar 0.95: met with 0.900", ran.stdout)
            self.assertEqual(sum(line.get("name") == "weft" for line in lines), 2)
            self.assertEqual(lines[-1]["summary"]["ratios"]["torch v"]["time"], [0.9] * 3)
            self.assertIn("commit", lines[0]["begin"])

    def test_losses_differ(self):
        with tempfile.TemporaryDirectory() as folder:
            ran, _ = self.versus(folder, "--weft", self.pretender(folder, "weft", 9, [7.0]), "--python", self.python(folder, 10, [7.1]))
            self.assertEqual(ran.returncode, 1)
            self.assertIn("FAULT losses: beside torch-fused-graph: loss of step 1 is 7.000000, not 7.100000", ran.stdout)

    def test_slow_first_steps_and_lack_of_time_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            weft, slow = self.pretender(folder, "weft", 9, [7.0]), self.python(folder, 10, [7.0], "exec sleep 5")
            ran, lines = self.versus(folder, "--weft", weft, "--python", slow, "--first-step", "0.2")
            self.assertIn("FAULT torch-fused-graph: no first step after 0 s", ran.stdout)
            self.assertTrue(any("no first step" in line.get("fault", "") for line in lines))
            ran, lines = self.versus(folder, "--weft", weft, "--python", slow, "--seconds", "0.05")
            self.assertIn("FAULT weft: not run: no time left", ran.stdout)

    def test_peers_take_the_words_that_they_are_given(self):
        scripts = VERSUS.parent / "peers"
        for row, (_, _, _, peers) in versus.gpu_rows.ROWS.items():
            o = versus.gpu_rows.options(["--weft", sys.executable, "--set", "layers=2", "--dtype", "f32"])
            for peer in peers:
                words = versus.gpu_rows.peer_command(o, row, peer)
                known = (scripts / Path(words[1]).name).read_text() + (scripts / "gpu_model.py").read_text()
                ast.parse(known)
                for word in words[2:]:
                    if word.startswith("--"):
                        self.assertIn(f'"{word}"', known, (row, peer))

    def test_refuses_what_makes_no_sense(self):
        with tempfile.TemporaryDirectory() as folder:
            for words, said in ((["--rows", "big"], "there is no row 'big'"), (["--peers", "cafe"], "there is no peer 'cafe'"),
                                (["--weft", "/nowhere/weft"], "there is no weft command '/nowhere/weft'")):
                ran, _ = self.versus(folder, "--weft", sys.executable, *words)
                self.assertEqual(ran.returncode, 2)
                self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main()
