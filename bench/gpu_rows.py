"""bench/versus for cards: Weft, PyTorch and JAX in turn on the large models of `weft bench lm`.

For every row and round it runs Weft and each peer in turn: weft, torch, weft, jax, ... Each peer's run is paired with the Weft
run just before it; what is printed is the median and the quartiles of the paired ratios of the times of a step, Weft over peer.
A row's bar is for the fastest peer variant. Every run first measures the product roof and loads the card for a second.
Each finished run appends a JSON line to --out, and each row a line with its ratios.

  bench/versus --device cuda --rows gpt2-124m,wide --seconds 570 --out results.jsonl
  bench/versus --device cuda --peers all                      every variant of each row
  bench/versus --check-losses --device cpu --rows gpt2-124m   losses beside torch's at a small size, on any device
  WEFT_PLUGIN=xla_cuda_plugin.so bench/versus --device xla --rows gpt2-124m,llama-1b --peers jax,weft-cuda
"""
import argparse
import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
TORCH = {
    "torch-fused": ["--opt", "fused"],
    "torch-fused-graph": ["--opt", "fused", "--graph"],  # times the step with and without a graph
    "torch-master": ["--opt", "master"],
    "torch-master-flash": ["--opt", "master", "--sdpa", "flash"],
    "torch-overhead": ["--opt", "fused", "--mode", "reduce-overhead"],
    "torch-regional": ["--opt", "fused", "--regional"],
    "torch-regional-master": ["--opt", "master", "--regional"],
    "torch-regional-flash": ["--opt", "master", "--regional", "--sdpa", "flash"],
}
# config, sizes to set, bar, peers: the one that has been fastest first, then the others.
ROWS = {
    "gpt2-124m": ("gpt2-124m", "", 0.92, ["torch-master", "torch-fused-graph", "torch-overhead", "jax"]),
    "gpt2-124m-b4": ("gpt2-124m", "batch=4", 0.92, ["torch-fused-graph", "jax"]),
    "gpt2-1.5b": ("gpt2-1.5b", "", 0.94, ["torch-regional", "jax"]),
    "wide": ("wide", "", 0.95, ["torch-fused-graph", "torch-master", "jax"]),
    "llama-1b": ("llama-1b", "", 0.99, ["torch-master", "torch-fused-graph", "jax"]),
    "paper-0.67b": ("paper-0.67b", "", 0.96, ["torch-master", "torch-master-flash", "jax"]),
    "paper-4.9b": ("paper-4.9b", "", 0.98, ["torch-regional-flash", "torch-regional-master"]),
}
BAR_OF_XLA = 1.08  # of the device xla beside JAX, which has the same compiler
CHECK_SIZES = "layers=2,vocab=1024,batch=2,length=64"
TOLERANCE = {"f32": 1e-5, "bf16": 5e-3}  # of losses from the same weights, relative


def quantile(numbers, share):
    ordered = sorted(numbers)
    place = (len(ordered) - 1) * share
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def with_sizes(*texts):
    text = ",".join(text for text in texts if text)
    return ["--set", text] if text else []


def weft_command(o, row, steps=None, device=None):
    config, sizes, _, _ = ROWS[row]
    load = ["--load", "1"] if (device or o.device) == "xla" else []
    return [o.weft, "bench", "lm", "--config", config, *with_sizes(sizes, o.set), "--device", device or o.device, "--steps",
            str(steps or o.steps), *load, *(["--dtype", o.dtype] if o.dtype else []), "--json", *shlex.split(o.weft_args)]


def peer_command(o, row, peer):
    if peer == "weft-cuda":
        return weft_command(o, row, device="cuda")
    config, sizes, _, _ = ROWS[row]
    words = [o.python, str(Path(o.scripts) / ("gpu_jax_lm.py" if peer == "jax" else "gpu_torch_lm.py")), "--config", config,
             *with_sizes(sizes, o.set), "--device", "cuda" if o.device == "xla" else o.device, "--steps", str(o.steps)]
    return words + (["--dtype", o.dtype] if o.dtype else []) + ([] if peer == "jax" else TORCH[peer])


def peers_of(o, row):
    own = ROWS[row][3] + (["weft-cuda"] if o.device == "xla" else [])
    if o.peers == ["all"]:
        return own
    return [peer for peer in o.peers if peer in own] if o.peers else own[:1]


def absent(o):
    """Modules that the peers' interpreter lacks: peer -> why."""
    if not shutil.which(o.python):
        return {kind: f"no interpreter '{o.python}' (--python, WEFT_PEERS_PYTHON)" for kind in ("torch", "jax")}
    why = {}
    for module in ("torch", "jax"):
        asked = [o.python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"]
        if subprocess.run(asked, capture_output=True).returncode:
            why[module] = f"'{o.python}' has no module {module} (--python, WEFT_PEERS_PYTHON)"
    return why


def run(command, seconds, first_step_seconds=None):
    """The JSON lines that a command printed, and what went wrong ("" if nothing). A peer prints a line after its first step."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        return [], str(error)
    lines, errors = queue.Queue(), []

    def read_lines():
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    readers = [threading.Thread(target=read_lines), threading.Thread(target=lambda: errors.extend(process.stderr))]
    for reader in readers:
        reader.start()
    begin, results, fault, began = time.time(), [], "", first_step_seconds is None
    while True:
        limit = seconds if began else min(seconds, first_step_seconds)
        try:
            line = lines.get(timeout=max(0, begin + limit - time.time()))
        except queue.Empty:
            fault = f"took longer than {seconds:.0f} s" if began or limit == seconds else f"no first step after {limit:.0f} s"
            process.kill()
            break
        if line is None:
            break
        began = began or line.startswith("first step done")
        if line.startswith("{"):
            try:
                results.append(json.loads(line))
            except ValueError:
                pass
    code = process.wait()
    for reader in readers:
        reader.join()
    if code and not fault:
        last = [line.strip() for line in errors if line.strip()] or ["nothing was printed"]
        fault = f"exit code {code}: " + " | ".join(last[-3:])[:600]
    if not results and not fault:
        fault = "printed no result"
    return results, fault


def fault_of_losses(got, want, dtype):
    """How two systems' losses from the same weights differ; "" if they agree."""
    for step, (a, b) in enumerate(zip(got, want), 1):
        if not abs(a - b) <= TOLERANCE[dtype] * abs(b):
            return f"loss of step {step} is {a:.6f}, not {b:.6f}"
    return "" if got and want else "no losses"


class Versus:
    def __init__(self, o, note, out):
        self.o, self.note, self.out = o, note, out
        self.end = time.time() + o.seconds if o.seconds else float("inf")
        self.missing = absent(o)

    def left(self):
        return self.end - time.time()

    def write(self, line):
        if self.out:
            with open(self.out, "a") as file:
                file.write(json.dumps(line) + "\n")

    def measured(self, row, name, command, first_step_seconds=None):
        """The results of a command, also written; the fault, if any."""
        if self.left() < self.o.least:
            return [], "not run: no time left"
        begin = time.time()
        results, fault = run(command, min(self.o.timeout, self.left()), first_step_seconds)
        for result in results:
            brief = {key: result.get(key) for key in ("variant", "ms", "ms_min", "mfu_causal_meas", "gemm_tflops", "peak_gib",
                                                      "first_loss_s", "compile_s", "loss0")}
            self.note(f"  {name}: " + ", ".join(f"{key} {value}" for key, value in brief.items() if value is not None))
        if fault:
            self.note(f"  {name}: FAULT {fault}")
        for result in results or [{"fault": fault}]:
            self.write({"row": row, "name": name, "seconds": round(time.time() - begin, 1), "command": shlex.join(command),
                        **({"fault": fault} if fault else {}), **result})
        return results, fault

    def row(self, row):
        """All rounds of a row: the pairs of each peer variant, and the faults."""
        pairs, faults = {}, {}
        for number in range(self.o.rounds):
            self.note(f"row {row}, round {number + 1} of {self.o.rounds}, {self.left():.0f} s left")
            for peer in peers_of(self.o, row) or [None]:
                weft, fault = self.measured(row, "weft", weft_command(self.o, row))
                if fault:
                    faults.setdefault("weft", fault)
                if not peer:
                    continue
                kind = peer.split("-")[0]
                if kind in self.missing:
                    faults.setdefault(peer, "absent: " + self.missing[kind])
                    continue
                others, fault = self.measured(row, peer, peer_command(self.o, row, peer), self.o.first_step)
                if fault:
                    faults.setdefault(peer, fault)
                for other in others:
                    if weft and other.get("ms"):
                        pairs.setdefault(other["system"] + " " + other["variant"], []).append((weft[-1], other))
                    differ = fault_of_losses(weft[-1]["losses10"], other["losses10"], other["dtype"]) if weft else ""
                    if differ and other["system"] == "torch":  # JAX draws other weights
                        faults.setdefault("losses", f"beside {peer}: {differ}")
        return self.summary(row, pairs, faults)

    def summary(self, row, pairs, faults):
        of_xla = self.o.device == "xla"
        bar = BAR_OF_XLA if of_xla else ROWS[row][2]
        line = {"row": row, "bar": bar, "ratios": {}, "faults": faults}
        text = [f"row {row}"]
        for variant, both in sorted(pairs.items(), key=lambda item: quantile([peer["ms"] for _, peer in item[1]], 0.5)):
            ratios = [weft["ms"] / peer["ms"] for weft, peer in both]
            line["ratios"][variant] = {"time": [round(quantile(ratios, share), 4) for share in (0.25, 0.5, 0.75)],
                                       "weft_ms": round(quantile([w["ms"] for w, _ in both], 0.5), 3),
                                       "peer_ms": round(quantile([p["ms"] for _, p in both], 0.5), 3),
                                       "memory": round(both[-1][0]["peak_gib"] / max(both[-1][1]["peak_gib"], 1e-9), 4),
                                       "pairs": len(both)}
            r = line["ratios"][variant]
            text.append(f"  {variant}: weft {r['weft_ms']} ms, peer {r['peer_ms']} ms, ratio {r['time'][1]:.3f} ({r['time'][0]:.3f} to "
                        f"{r['time'][2]:.3f}, {len(both)} pairs), memory {r['memory']:.3f}")
        if line["ratios"]:
            of_jax = [variant for variant in line["ratios"] if variant.startswith("jax")]
            line["fastest"] = next(iter(of_jax if of_xla and of_jax else line["ratios"]))
            best = line["ratios"][line["fastest"]]["time"][1]
            text.append(f"  bar {bar}: {'met' if best <= bar else 'missed'} with {best:.3f} beside {line['fastest']}")
        text += [f"  FAULT {name}: {fault}" for name, fault in faults.items()]
        self.write({"summary": line})
        print("\n".join(text), flush=True)
        return line

    def check_losses(self, row):
        """The losses of Weft and torch from the same weights, in f32 and bf16, at a small size."""
        ok = True
        for dtype in [self.o.dtype] if self.o.dtype else ["f32", "bf16"]:
            sized = argparse.Namespace(**{**vars(self.o), "dtype": dtype, "set": self.o.set or CHECK_SIZES})
            sized.weft_args += " --warmup 0" + (" --load 0" if "--load" not in sized.weft_args else "")
            weft, fault = self.measured(row, "weft", weft_command(sized, row, 10))
            other = []
            if not fault:
                command = peer_command(sized, row, "torch-fused") + ["--only-losses", "--mode", "eager"]
                other, fault = self.measured(row, "torch", command)
            differ = fault or fault_of_losses(weft[-1]["losses10"], other[-1]["losses10"], dtype)
            apart = "" if differ else f", at most {max(abs(a - b) / b for a, b in zip(weft[-1]['losses10'], other[-1]['losses10'])):.1e} apart"
            print(f"losses of {row}, {dtype}: " + (f"FAULT {differ}" if differ else f"agree over {len(other[-1]['losses10'])} steps{apart}"),
                  flush=True)
            ok = ok and not differ
        return ok


def options(words):
    env = os.environ.get
    p = argparse.ArgumentParser(prog="bench/versus", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--device", default="cuda")
    p.add_argument("--rows", default="all", help="with commas, or all: " + ", ".join(ROWS))
    p.add_argument("--peers", default="", help="with commas, or all: " + ", ".join([*TORCH, "jax"])
                   + "; default: of each row the variant that has been fastest; with --device xla also weft-cuda")
    p.add_argument("--rounds", type=int, default=1)
    p.add_argument("--steps", type=int, default=20, help="timed steps of each run")
    p.add_argument("--seconds", type=float, default=0, help="of all runs together; 0: no limit")
    p.add_argument("--least", type=float, default=20, help="no run begins with fewer seconds left")
    p.add_argument("--timeout", type=float, default=300, help="seconds for one run")
    p.add_argument("--first-step", type=float, default=120, help="seconds that a peer has until its first step")
    p.add_argument("--dtype", default="", choices=["", "bf16", "f32"], help="default: the config's, bf16")
    p.add_argument("--set", default="", help="dim=size[,dim=size…] for all systems")
    p.add_argument("--weft", default=env("WEFT_COMMAND", str(HERE.parent / "build/release/tools/weft")))
    p.add_argument("--weft-args", default="", help="more words for weft bench lm")
    p.add_argument("--python", default=env("WEFT_PEERS_PYTHON", "python3"), help="has torch and jax")
    p.add_argument("--scripts", default=env("WEFT_PEERS_SCRIPTS", str(HERE / "peers")))
    p.add_argument("--cache", default=str(HERE.parent / "build/peers-cache"),
                   help="folder where peers keep what they compile: later runs start faster; '' for none")
    p.add_argument("--check-losses", action="store_true", help="compare losses with torch's at a small size; no times")
    p.add_argument("--out", default="versus-gpu.jsonl", help="lines are appended; '' for none")
    o = p.parse_args(words)
    o.rows = list(ROWS) if o.rows == "all" else o.rows.split(",")
    o.peers = [peer for peer in o.peers.split(",") if peer]
    for row in o.rows:
        if row not in ROWS:
            p.error(f"there is no row '{row}'; there are: {', '.join(ROWS)}")
    for peer in o.peers:
        if peer not in [*TORCH, "jax", "all"] and (peer, o.device) != ("weft-cuda", "xla"):
            p.error(f"there is no peer '{peer}'; there are: {', '.join([*TORCH, 'jax'])}")
    if o.rounds < 1 or o.steps < 1:
        p.error("--rounds and --steps count from 1")
    if not os.access(o.weft, os.X_OK):
        p.error(f"there is no weft command '{o.weft}': build it, or give --weft")
    return o


def main(words, described):
    """`described`: what a results file says about this machine and commit."""
    o = options(words)
    if o.cache:
        os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", o.cache + "/inductor")
        os.environ.setdefault("TRITON_CACHE_DIR", o.cache + "/triton")
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", o.cache + "/jax")
    versus = Versus(o, lambda line: print(line, file=sys.stderr, flush=True), o.out)
    versus.write({"begin": {**described, "command": shlex.join(["bench/versus", *words]), "cache": o.cache}})
    if o.check_losses:
        return 0 if all([versus.check_losses(row) for row in o.rows]) else 1
    faults = [versus.row(row)["faults"] for row in o.rows]
    return 1 if any(faults) else 0
