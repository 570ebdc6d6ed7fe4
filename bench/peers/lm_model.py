"""What the peers share: the sizes, weights and tokens of `weft bench lm` (docs/bench.md), and the line that they print."""
import argparse
import json
import resource
import time

import numpy as np

CONFIGS = {
    "tiny": dict(vocab=256, d_model=64, heads=4, d_kv=16, d_ff=128, layers=2, length=32, batch=4, rate=1e-3),
    "small": dict(vocab=8192, d_model=256, heads=4, d_kv=64, d_ff=1024, layers=4, length=128, batch=16, rate=1e-4),
    "medium": dict(vocab=32768, d_model=512, heads=8, d_kv=64, d_ff=2048, layers=6, length=256, batch=8, rate=3e-5),
}
BETA1, BETA2, ADAM_EPSILON, NORM_EPSILON = 0.9, 0.999, 1e-6, 1e-6
BATCH_STREAM = 1000000


def splitmix64(x):
    with np.errstate(over="ignore"):
        z = np.asarray(x, np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def stream(number, count):
    """The first `count` words of a stream."""
    with np.errstate(over="ignore"):
        return splitmix64(splitmix64(np.uint64(1234 * 2**20 + number)) + np.arange(count, dtype=np.uint64))


def weight_list(c):
    """(name, dims, deviation) in the order of the streams; deviation None: ones, 0: zeros."""
    narrow, wide = c["d_model"] ** -0.5, c["d_ff"] ** -0.5
    norm = lambda name: [(name + ".scale", ("d_model",), None), (name + ".bias", ("d_model",), 0)]
    weights = [("embedding", ("vocab", "d_model"), narrow), ("positions", ("length", "d_model"), narrow)]
    for i in range(c["layers"]):
        layer = f"layer{i}."
        weights += norm(layer + "norm1")
        weights += [(layer + name, ("d_model", "heads", "d_kv"), narrow) for name in ("wq", "wk", "wv")]
        weights += [(layer + "wo", ("heads", "d_kv", "d_model"), (c["heads"] * c["d_kv"]) ** -0.5)]
        weights += norm(layer + "norm2")
        weights += [(layer + "wi", ("d_model", "d_ff"), narrow), (layer + "wf", ("d_ff", "d_model"), wide)]
    return weights + norm("norm") + [("logits", ("d_model", "vocab"), narrow)]


def first_weights(c):
    """Arrays by name: uniform numbers of the given deviation, in float32."""
    arrays = {}
    for number, (name, dims, deviation) in enumerate(weight_list(c)):
        shape = [c[dim] for dim in dims]
        if not deviation:
            arrays[name] = np.full(shape, 1.0 if deviation is None else 0.0, np.float32)
            continue
        unit = (stream(number, int(np.prod(shape))) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
        arrays[name] = ((unit - np.float32(0.5)) * np.float32(2 * 3**0.5 * deviation)).reshape(shape)
    return arrays


def token_batch(c):
    """Inputs and targets, [batch, length]: the targets are the inputs shifted by one."""
    words = stream(BATCH_STREAM, c["batch"] * (c["length"] + 1)) % np.uint64(c["vocab"])
    tokens = words.astype(np.int32).reshape(c["batch"], c["length"] + 1)
    return tokens[:, :-1].copy(), tokens[:, 1:].copy()


def adam_scalars(c, step):
    """The rate and the epsilon of a step with the bias correction in them, computed in double."""
    first, second = 1 - BETA1**step, 1 - BETA2**step
    return np.float32(c["rate"] * second**0.5 / first), np.float32(ADAM_EPSILON * second**0.5)


def pairs(text):
    """"a:b;c:d" as [("a", "b"), ("c", "d")]."""
    return [tuple(part.split(":")) for part in text.split(";") if part]


def parser(description):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", default="small", choices=CONFIGS)
    p.add_argument("--mesh", default="all:1", help="axes and sizes, as rows:2;cols:2")
    p.add_argument("--layout", default="", help="dim:axis rules, as batch:rows;heads:cols")
    p.add_argument("--steps", type=int, default=10, help="timed steps")
    p.add_argument("--warmup", type=int, default=3, help="steps before them")
    return p


def resident_mb():
    """The most resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def cpu_seconds():
    """Of all threads of this process so far."""
    return time.process_time()


def report(system, o, losses, seconds, setup_s, peak_rss_mb=None, **more):
    """Prints the keys of `weft bench lm --json` as one line."""
    c, ms = CONFIGS[o.config], np.sort(np.array(seconds)) * 1e3
    median = float(np.median(ms))
    print(json.dumps({
        "system": system, "config": o.config, "mesh": o.mesh, "layout": o.layout, "ms_per_step": round(median, 2),
        "ms_min": round(float(ms[0]), 2), "ms_max": round(float(ms[-1]), 2), "steps": len(ms),
        "tokens_per_s": round(c["batch"] * c["length"] / median * 1e3, 1),
        "peak_rss_mb": round(peak_rss_mb or resident_mb(), 1), "loss_first": losses[0], "loss_last": losses[-1],
        "setup_s": round(setup_s, 2), "losses10": losses[:10], **more}), flush=True)
