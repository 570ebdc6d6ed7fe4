"""What the peers for GPUs share: the large models of `weft bench lm`, their flops, first weights, and the line that they print.

Flops of one training step, of matrix products alone (forward, and twice that backward):
  products   6 x (weights that a product reads: projections, feed-forward nets, output table) x tokens
  attention  12 x layers x length x heads x d_kv x tokens for all pairs, half of it for a causal model
MFU is given with half of attention ("causal") and with all of it ("full"), over two roofs: the bf16 product of 8192 x 8192
matrices measured in the same process, and the 989 TFLOP/s of the data sheet.
"""
import argparse
import json
import resource
import time

import numpy as np

DATA_SHEET = 989e12
BETA1, BETA2, EPSILON, RATE = 0.9, 0.95, 1e-8, 1e-4  # of Adam, without weight decay
TABLES, BATCH_STREAM = 0.02, 1000000
LN_EPSILON, RMS_EPSILON = 1e-5, 1e-6


def config(vocab, d_model, heads, d_kv, d_ff, layers, length, batch, act, gpt2):
    """gpt2: layer norms, biases and a tied output table; else RMS norms without biases and a table of its own."""
    return dict(vocab=vocab, d_model=d_model, heads=heads, d_kv=d_kv, d_ff=d_ff, layers=layers, length=length, batch=batch,
                act=act, bias=gpt2, norm="ln" if gpt2 else "rms", tied=gpt2)


CONFIGS = {
    "gpt2-124m": config(50304, 768, 12, 64, 3072, 12, 1024, 32, "gelu", True),
    "gpt2-1.5b": config(50304, 1600, 25, 64, 6400, 48, 1024, 16, "gelu", True),
    "wide": config(32768, 1024, 32, 128, 16384, 4, 256, 64, "relu", False),
    "llama-1b": config(32768, 2048, 32, 64, 8192, 16, 2048, 8, "gelu", False),
    "paper-0.67b": config(32768, 1024, 32, 256, 32768, 6, 256, 64, "relu", False),
    "paper-4.9b": config(32768, 1024, 256, 256, 262144, 6, 256, 16, "relu", False),
}


def flops(c):
    inner, tokens = c["heads"] * c["d_kv"], c["batch"] * c["length"]
    weights = c["layers"] * (4 * c["d_model"] * inner + 2 * c["d_model"] * c["d_ff"]) + c["d_model"] * c["vocab"]
    attention = 12 * c["layers"] * c["length"] * inner * tokens
    return {"tokens": tokens, "causal": 6 * weights * tokens + attention / 2, "full": 6 * weights * tokens + attention}


def weight_list(c):
    """(name, shape, deviation) in the order of the streams of random numbers; 0: zeros, None: ones. Shapes are [in, out].

    Names: wte, wpe, head, nf.w, and of layer i i.n1.w, i.n1.b, i.q.w, …, i.out.w, i.fc.w, i.proj.w.
    """
    width, inner, residual = c["d_model"], c["heads"] * c["d_kv"], TABLES / (2 * c["layers"]) ** 0.5
    norm = lambda name: [(name + ".w", (width,), None)] + ([(name + ".b", (width,), 0)] if c["norm"] == "ln" else [])
    bias = lambda name, size: [(name + ".b", (size,), 0)] if c["bias"] else []
    all_of = [("wte", (c["vocab"], width), TABLES), ("wpe", (c["length"], width), TABLES)]
    for i in range(c["layers"]):
        all_of += norm(f"{i}.n1")
        all_of += [(f"{i}.{part}.w", (width, inner), TABLES) for part in "qkv"]
        for part in "qkv":
            all_of += bias(f"{i}.{part}", inner)
        all_of += [(f"{i}.out.w", (inner, width), residual)] + bias(f"{i}.out", width) + norm(f"{i}.n2")
        all_of += [(f"{i}.fc.w", (width, c["d_ff"]), TABLES)] + bias(f"{i}.fc", c["d_ff"])
        all_of += [(f"{i}.proj.w", (c["d_ff"], width), residual)] + bias(f"{i}.proj", width)
    return all_of + norm("nf") + ([] if c["tied"] else [("head", (width, c["vocab"]), TABLES)])


def batch_of(c):
    """Inputs and targets [batch, length] of the timed batch: the targets are the inputs shifted by one."""
    from lm_model import stream
    words = stream(BATCH_STREAM, c["batch"] * (c["length"] + 1)) % np.uint64(c["vocab"])
    tokens = words.astype(np.int32).reshape(c["batch"], c["length"] + 1)
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def options(description):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", required=True, choices=CONFIGS)
    p.add_argument("--set", default="", help="dim=size[,dim=size…]: other sizes")
    p.add_argument("--dtype", default="bf16", choices=["bf16", "f32"], help="of activations; weights stay f32")
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    p.add_argument("--steps", type=int, default=20, help="timed steps")
    p.add_argument("--load", type=float, default=1, help="least seconds of untimed steps")
    p.add_argument("--losses", type=int, default=10, help="losses of the first steps to print")
    p.add_argument("--only-losses", action="store_true", help="time nothing")
    return p


def sized(o):
    c = dict(CONFIGS[o.config])
    for word in filter(None, o.set.split(",")):
        name, _, size = word.partition("=")
        if not isinstance(c.get(name), int) or isinstance(c[name], bool) or not size.isdigit():
            raise SystemExit(f"--set {word}: there is no such size; there are: "
                             + ", ".join(k for k, v in c.items() if type(v) is int))
        c[name] = int(size)
    return c


def first_step_done():
    """bench/versus waits for this line."""
    print("first step done", flush=True)


def report(system, o, c, variant, losses, ms=None, peak_gib=None, gemm_tflops=None, **more):
    """One JSON line with the keys of `weft bench lm --json`. `ms`: of the timed steps."""
    line = {"system": system, "config": o.config, "variant": variant, "B": c["batch"], "S": c["length"], "dtype": o.dtype,
            "losses10": [round(loss, 6) for loss in losses], "loss0": round(losses[0], 4) if losses else None}
    if ms is not None:
        ms, f = sorted(ms), flops(c)
        median = float(np.median(ms))
        rate = {kind: f[kind] / median / 1e9 for kind in ("causal", "full")}  # TFLOP/s
        line |= {"ms": round(median, 3), "ms_min": round(ms[0], 3), "tok_s": round(f["tokens"] / median * 1e3),
                 "tflops_causal": round(rate["causal"], 1)}
        if gemm_tflops:
            line |= {"gemm_tflops": round(gemm_tflops, 1), "mfu_causal_meas": round(rate["causal"] / gemm_tflops, 4),
                     "mfu_full_meas": round(rate["full"] / gemm_tflops, 4)}
        line |= {f"mfu_{kind}_989": round(rate[kind] * 1e12 / DATA_SHEET, 4) for kind in rate}
        line["peak_gib"] = round(peak_gib or 0, 2)
    print(json.dumps(line | more), flush=True)


def resident_gib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def load_for(seconds, step, wait):
    """Steps for so long."""
    begin = time.time()
    while time.time() - begin < seconds:
        step()
        wait()
