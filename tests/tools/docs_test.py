#!/usr/bin/env python3
"""The programs in README.md and docs/writing-a-layer.md are those of examples/, and learn. docs_test.py BUILD/examples"""
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.argv.pop(1))


def blocks(page):
    return re.findall(r"```cpp\n(.*?)```", (ROOT / page).read_text(), re.S)


def losses(program, *words):
    ran = subprocess.run([str(PROGRAMS / program), *words], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return [float(line.split()[-1]) for line in ran.stdout.splitlines() if re.fullmatch(r"(step .*loss )?[-+.e0-9]+", line)]


class Docs(unittest.TestCase):
    def test_the_readme_has_the_first_program(self):
        self.assertIn((ROOT / "examples/first_program.cc").read_text(), blocks("README.md"))

    def test_the_first_program_learns(self):
        falling = losses("first_program")
        self.assertEqual(len(falling), 10)
        self.assertEqual(falling, sorted(falling, reverse=True))
        self.assertGreater(falling[0], 2)
        self.assertLess(falling[-1], 0.1)
        self.assertIn(f"losses from {falling[0]:.1f} down to {falling[-1]:.2f}", (ROOT / "README.md").read_text())

    def test_the_page_on_layers_has_the_example(self):
        example = (ROOT / "examples/own_layer.cc").read_text()
        pieces = blocks("docs/writing-a-layer.md")
        self.assertGreaterEqual(len(pieces), 2)
        for piece in pieces:
            self.assertIn(piece, example)

    def test_the_layer_learns_alike_on_every_mesh(self):
        one, many = losses("own_layer", "", ""), losses("own_layer", "data:2 model:2", "batch:data hidden:model")
        self.assertEqual(len(one), 4)
        self.assertLess(one[-1], 0.1 * one[0])
        for a, b in zip(one, many, strict=True):
            self.assertAlmostEqual(a, b, delta=1e-3 * a)

    def test_files_that_the_pages_name_exist(self):
        for page in ("README.md", *(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").glob("*.md"))):
            text = (ROOT / page).read_text()
            named = re.findall(r"`((?:docs|examples|bench|configs|scripts|src|tests|include)/[\w./-]+?)[/.]?`", text)
            linked = [f"docs/{name}" for name in re.findall(r"\]\((\w[\w.-]*\.md)\)", text)]
            for name in named + linked:
                self.assertTrue((ROOT / name).exists(), f"{page} names {name}")


if __name__ == "__main__":
    unittest.main()
