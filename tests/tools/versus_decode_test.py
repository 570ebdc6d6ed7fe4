#!/usr/bin/env python3
"""bench/versus-decode: its work, its commands, and whole runs with systems that only pretend."""
import ast
import importlib.machinery
import importlib.util
import json
import os
import stat
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

VERSUS = Path(__file__).resolve().parents[2] / "bench" / "versus-decode"
loader = importlib.machinery.SourceFileLoader("versus_decode", str(VERSUS))
versus = importlib.util.module_from_spec(importlib.util.spec_from_loader("versus_decode", loader))
sys.dont_write_bytecode = True
loader.exec_module(versus)


class Work(unittest.TestCase):
    def test_sentences_have_realistic_lengths(self):
        rows = versus.sentences(1000, 32)
        reads = [read for read, _ in rows]
        self.assertEqual((len(rows), min(reads), max(reads)), (1000, 3, 60))
        self.assertAlmostEqual(sum(reads) / 1000, 14, delta=0.5)
        self.assertAlmostEqual(sum(write for _, write in rows) / sum(reads), 1.1, delta=0.02)
        self.assertEqual(rows, versus.sentences(1000, 32))

    def test_a_sorted_batch_writes_one_number_of_tokens(self):
        rows = sorted(versus.sentences(100, 32), key=lambda row: row[0])
        for begin in range(0, 100, 32):
            self.assertEqual(len({write for _, write in rows[begin:begin + 32]}), 1)

    def test_prompts_of_a_batch_span_the_lengths(self):
        self.assertEqual(sorted(read for read, _ in versus.ROWS["lm16"][5](0)), list(range(16, 257, 16)))

    def test_a_run_must_do_all_of_the_work(self):
        run = {"prompt_tokens": 5, "tokens": 3, "rows": 1}
        self.assertEqual(versus.fault_of(run, [(5, 3)]), "")
        self.assertEqual(versus.fault_of(run | {"tokens": 2}, [(5, 3)]), "tokens is 2, not 3")
        self.assertEqual(versus.fault_of({"failure": "broken"}, [(5, 3)]), "broken")


class Commands(unittest.TestCase):
    def options(self, *words):
        return versus.options(["--weft", sys.executable, *words])

    def test_weft(self):
        words = versus.weft_command(self.options("--weft-args", "--device cpu"), "lm1-32k", "f16", "work.txt")
        self.assertEqual(words[words.index("--set") + 1], "model.vocab=32768,decode.weights=bf16")
        self.assertEqual(words[-2:], ["--device", "cpu"])
        self.assertIn("--roofs", words)
        self.assertNotIn("--set", versus.weft_command(self.options(), "translator4", "f32", "work.txt"))

    def test_the_row_of_positions_compares_weft_with_itself(self):
        o = self.options()
        long = versus.weft_command(o, "position", "f32", "work.txt", versus.LONG)
        short = versus.peer_command(o, "position", "f32", "work.txt")
        self.assertEqual([(a, b) for a, b in zip(long, short, strict=True) if a != b], [("2048", "64")])

    def test_every_row_has_a_config_and_a_measure(self):
        for row, (config, vocab, peer, batch, beams, make, measure) in versus.ROWS.items():
            self.assertIn("vocab", tomllib.loads((versus.CONFIGS / f"{config}.toml").read_text())["model"])
            self.assertIn(measure, versus.SHOWN)
            self.assertIn(peer, versus.WEIGHTS)
            self.assertTrue(all(read > 0 and write > 0 for read, write in make(40)), row)

    def test_peers_take_the_words_that_they_are_given(self):
        """The systems themselves need not be there."""
        folder = VERSUS.parent / "peers"
        for row, (_, _, peer, *_) in versus.ROWS.items():
            if peer == "weft-64":
                continue
            known = (folder / f"{peer}_decode.py").read_text() + (folder / "decode_work.py").read_text()
            ast.parse(known)
            for weights in versus.WEIGHTS[peer]:
                words = versus.peer_command(self.options(), row, weights, "work.txt")
                self.assertEqual(words[1], str(folder / f"{peer}_decode.py"))
                for word in words:
                    if word.startswith("--"):
                        self.assertIn(f'"{word}"', known, (row, word))


def pretender(folder, name, faster=1, lost=0):
    """A program that prints the numbers of a run over the work that it is given. Python, so that it can be a peer's script too."""
    path = Path(folder) / name
    path.write_text(f"""#!{sys.executable}
import json, sys
rows = [tuple(map(int, line.split())) for line in open(sys.argv[sys.argv.index("--work") + 1])]
reads, writes = map(sum, zip(*rows))
print("noise")
print(json.dumps(dict(rows=len(rows), prompt_tokens=reads, tokens=writes - {lost}, seconds=4 / {faster}, tokens_per_s=100 * {faster},
                      prompt_tokens_per_s=1000, ms_per_step=2 / {faster}, peak_rss_mb=10, read_share=0.75)))
""")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


class WholeRuns(unittest.TestCase):
    def versus(self, folder, *words):
        return subprocess.run([sys.executable, str(VERSUS), "--rounds", "3", *words], cwd=folder, capture_output=True, text=True,
                              env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})

    def test_prints_ratios_and_appends_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            words = ["--weft", pretender(folder, "weft", faster=2), "--rows", "translator4,position,lm1-8k", "--weights", "f32", "--python",
                     "/nowhere/python"]
            for count in (1, 2):
                ran = self.versus(folder, *words)
                self.assertEqual(ran.returncode, 0, ran.stderr)
                self.assertIn("absent: llama: no interpreter '/nowhere/python' (--python, WEFT_PEERS_PYTHON)", ran.stdout)
                self.assertIn("translator4, f32\n  weft     2.000 (2.000 to 2.000) s, 10 MiB\n", ran.stdout)
                self.assertIn("weft over weft-64: 1.000 (1.000 to 1.000), 3 pairs", ran.stdout)
                self.assertIn("weft     200.0 (200.0 to 200.0) tokens/s, 75 % of the memory roof, 10 MiB", ran.stdout)
                lines = (Path(folder) / "versus-decode.jsonl").read_text().splitlines()
                self.assertEqual(len(lines), count)
            line = json.loads(lines[-1])
            for key in ("date", "commit", "machine", "command", "figure"):
                self.assertTrue(line[key])
            self.assertEqual([row["row"] for row in line["decode"]], ["translator4", "position", "lm1-8k"])
            self.assertEqual(len(line["decode"][0]["runs"]["weft"]), 3)

    def test_peers_run_in_turn(self):
        with tempfile.TemporaryDirectory() as folder:
            pretender(folder, "llama_decode.py")
            for module in ("llama_cpp", "gguf", "numpy"):  # on the path of the interpreter that asks for them
                (Path(folder) / f"{module}.py").write_text("")
            os.environ["PYTHONPATH"] = folder
            try:
                ran = self.versus(folder, "--weft", pretender(folder, "weft", faster=3), "--rows", "lm16", "--weights", "f32,int8", "--peers",
                                  "llama", "--python", sys.executable, "--scripts", folder, "--rounds", "2")
            finally:
                del os.environ["PYTHONPATH"]
            self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
            self.assertEqual(ran.stdout.count("weft over llama: 3.000 (3.000 to 3.000), 2 pairs"), 2)
            said = [line.split(":")[0].strip() for line in ran.stderr.splitlines() if line.startswith("  ")]
            self.assertEqual(said, ["weft", "llama"] * 4)

    def test_work_that_was_not_done_is_a_fault(self):
        with tempfile.TemporaryDirectory() as folder:
            ran = self.versus(folder, "--weft", pretender(folder, "weft", lost=7), "--rows", "prompt", "--weights", "f32", "--peers", "")
            self.assertEqual(ran.returncode, 1)
            self.assertIn("FAULT weft: tokens is -6, not 1", ran.stdout)

    def test_refuses_what_makes_no_sense(self):
        for words, said in ((["--rows", "3x3"], "there is no row '3x3'"), (["--peers", "cafe"], "there is no peer 'cafe'"),
                            (["--weights", "f8"], "there are no weights 'f8'"), (["--rounds", "0"], "count from 1"),
                            (["--weft", "/nowhere/weft"], "there is no weft command '/nowhere/weft'")):
            ran = self.versus(".", *words)
            self.assertEqual(ran.returncode, 2, words)
            self.assertIn(said, ran.stderr)


if __name__ == "__main__":
    unittest.main()
