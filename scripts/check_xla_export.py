"""Runs the exported step of the demo language model in JAX on 8 virtual devices, mesh 2x4: the losses of 10 steps must equal those
of `weft run`. check_xla_export.py WEFT REPOSITORY FOLDER PYTHON, whose interpreter has JAX"""

import json
import subprocess
import sys
from pathlib import Path

weft, repository, folder, python = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4]
STEPS, LIMIT = 10, 1e-5  # of a loss, relative
CONFIG = ["configs/lm-demo.toml", "--set", "model.vocab=8192", "--mesh", "data:2 model:4"]


def run(*words):
    return subprocess.run([str(word) for word in words], cwd=repository, check=True, capture_output=True, text=True).stdout


module, values, program = folder / "step.mlir", folder / "values.safetensors", folder / "step.weft"
run(weft, "export", "--config", *CONFIG, "--stablehlo", module)
told = run(python, "examples/run_stablehlo.py", module, "--random", 1, "--set", "adam/rate=0.003", "--set", "adam/second_scale=1",
           "--steps", STEPS, "--save", values)
theirs = [json.loads(line)["loss"] for line in told.splitlines()]


def refused(text, *words):
    """The example must refuse these words with this text."""
    ran = subprocess.run([str(word) for word in (python, "examples/run_stablehlo.py", *words)], cwd=repository, capture_output=True,
                         text=True)
    if ran.returncode == 0 or text not in ran.stderr or "Traceback" in ran.stderr:
        sys.exit(f"error: run_stablehlo.py {' '.join(map(str, words))} does not say '{text}': {ran.stderr}")


refused("the module has no such input", module, "--random", 1, "--set", "adam/rat=0.003")
refused("'fast' is not a number", module, "--random", 1, "--set", "adam/rate=fast")
refused("there is no value of adam/rate", module, "--random", 1)
refused("cannot read the manifest", folder / "none.mlir", "--random", 1)
for name, text in (("broken", "{"), ("other", (folder / "step.mlir.json").read_text())):
    (folder / f"{name}.mlir").write_text("no module")
    (folder / f"{name}.mlir.json").write_text(text)
refused("is no JSON", folder / "broken.mlir", "--random", 1)
refused("cannot read the module", folder / "other.mlir", "--random", 1, "--set", "adam/rate=0.1", "--set", "adam/second_scale=1")
run(weft, "explain", *CONFIG, "--program", program)
ours = []
for steps in range(1, STEPS + 1):  # weft run prints the results of the last step
    outputs = json.loads(run(weft, "run", program, "--inputs", values, "--steps", steps, "--json"))["outputs"]
    ours += [output["first"][0] for output in outputs if output["name"] == "loss"]
if len(ours) != STEPS or len(theirs) != STEPS:
    sys.exit(f"error: there are {len(ours)} losses of weft run and {len(theirs)} of JAX")
gap = max(abs(a - b) / abs(a) for a, b in zip(ours, theirs))
print(f"10 steps in JAX {run(python, '-c', 'import jax; print(jax.__version__)').strip()} and in weft run: largest relative difference "
      f"of a loss {gap:.2e}; losses from {theirs[0]:.6f} to {theirs[-1]:.6f} in JAX, to {ours[-1]:.6f} in weft run")
if not gap <= LIMIT or not ours[-1] < ours[0]:
    sys.exit(f"error: the losses differ by more than {LIMIT}, or do not fall")
