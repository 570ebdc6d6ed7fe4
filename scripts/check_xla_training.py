"""Trains the demo language model on XLA's CPU plugin and on the CPU engine: the losses of 50 steps on a 2x2 mesh must agree
within 1e-5, and a checkpoint of each must go on in the other. check_xla_training.py WEFT REPOSITORY FOLDER"""

import json
import subprocess
import sys
from pathlib import Path

weft, repository, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
LIMIT = 1e-5


def train(out, device, steps):
    command = [weft, "train", "configs/lm-demo.toml", "--device", device, "--out", str(folder / out), "--steps", str(steps),
               "--quiet", "--set", "run.log_every=1", "--set", "run.eval_every=0", "--set", "data.dev=[]", "--set",
               "optimizer.schedule=constant 0.003 * linear_warmup 20 * cosine 50"]
    subprocess.run(command, cwd=repository, check=True)


def losses(out):
    found = {}
    for line in (folder / out / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "loss" in row:
            found[row["step"]] = row["loss"]
    return found


def compare(what, ours, theirs):
    if set(ours) != set(theirs) or len(ours) != 50:
        sys.exit(f"error: {what}: steps {sorted(set(ours) ^ set(theirs))} are missing in one run")
    worst = max(ours, key=lambda step: abs(ours[step] - theirs[step]))
    gap = abs(ours[worst] - theirs[worst])
    print(f"{what}: largest difference of a loss {gap:.2e} at step {worst}; the last losses {ours[50]:.6f}, {theirs[50]:.6f}")
    if not gap <= LIMIT:
        sys.exit(f"error: {what}: the losses differ by more than {LIMIT}")


train("cpu", "cpu", 50)
train("xla", "xla", 50)
compare("50 steps, xla and cpu", losses("xla"), losses("cpu"))
train("to-cpu", "xla", 25)
train("to-cpu", "cpu", 50)
compare("25 steps on xla, then 25 on cpu", losses("to-cpu"), losses("cpu"))
train("to-xla", "cpu", 25)
train("to-xla", "xla", 50)
compare("25 steps on cpu, then 25 on xla", losses("to-xla"), losses("cpu"))
