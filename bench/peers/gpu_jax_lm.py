#!/usr/bin/env python3
"""The large models of `weft bench lm` in JAX: one jit with donated state for forward, backward and Adam.

Weights, their Adam state and the statistics of norms, softmax and loss are f32; products and the residual stream have --dtype.
Weights are random, except with --only-losses: then they are those of Weft, as the batch always is. Prints a JSON line.

  python gpu_jax_lm.py --config gpt2-124m
"""
import math
import os
import time

import gpu_model

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.92")
import jax
import jax.numpy as jnp
import numpy as np


def norm(c, w, name, x):
    y = x.astype(jnp.float32)
    if c["norm"] == "ln":
        mean = y.mean(-1, keepdims=True)
        y = (y - mean) * jax.lax.rsqrt(jnp.square(y - mean).mean(-1, keepdims=True) + gpu_model.LN_EPSILON)
        return (y * w[name + ".w"] + w[name + ".b"]).astype(x.dtype)
    y = y * jax.lax.rsqrt(jnp.square(y).mean(-1, keepdims=True) + gpu_model.RMS_EPSILON)
    return (y * w[name + ".w"]).astype(x.dtype)


def linear(w, name, x):
    y = x @ w[name + ".w"].astype(x.dtype)
    return y + w[name + ".b"].astype(x.dtype) if name + ".b" in w else y


def block(c, attention, w, i, x):
    batch, length, _ = x.shape
    qkv = linear(w, f"{i}.qkv", norm(c, w, f"{i}.n1", x)).reshape(batch, length, 3, c["heads"], c["d_kv"])
    seen = jax.nn.dot_product_attention(qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2], is_causal=True, implementation=attention)
    x = x + linear(w, f"{i}.out", seen.reshape(batch, length, c["heads"] * c["d_kv"]))
    y = linear(w, f"{i}.fc", norm(c, w, f"{i}.n2", x))
    y = jax.nn.gelu(y, approximate=True) if c["act"] == "gelu" else jax.nn.relu(y)
    return x + linear(w, f"{i}.proj", y)


def loss_of(c, attention, dtype, w, tokens, targets):
    x = w["wte"].astype(dtype)[tokens] + w["wpe"].astype(dtype) if dtype != jnp.float32 else w["wte"][tokens] + w["wpe"]
    for i in range(c["layers"]):
        x = block(c, attention, w, i, x)
    table = w["wte"].T if c["tied"] else w["head"]
    logits = (norm(c, w, "nf", x) @ table.astype(x.dtype)).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
    return (jax.nn.logsumexp(logits, -1) - picked).mean()


def weights_of_weft(c):
    from lm_model import stream
    w = {}
    for number, (name, shape, deviation) in enumerate(gpu_model.weight_list(c)):
        if not deviation:
            w[name] = np.full(shape, 1.0 if deviation is None else 0.0, np.float32)
            continue
        unit = (stream(number, math.prod(shape)) >> np.uint64(40)).astype(np.float32) * np.float32(2**-24)
        w[name] = ((unit - np.float32(0.5)) * np.float32(2 * 3**0.5 * deviation)).reshape(shape)
    return {name: jnp.asarray(value) for name, value in w.items()}


def random_weights(c):
    """Drawn one by one: one jit over hundreds of draws compiles slowly."""
    w = {}
    for number, (name, shape, deviation) in enumerate(gpu_model.weight_list(c)):
        if deviation:
            w[name] = jax.random.normal(jax.random.fold_in(jax.random.key(0), number), shape, jnp.float32) * deviation
        else:
            w[name] = jnp.full(shape, 1.0 if deviation is None else 0.0, jnp.float32)
    return w


def joined(w):
    """q, k and v as one matrix and one bias for each layer."""
    for name in [name for name in w if ".q." in name]:
        layer, _, last = name.split(".")
        w[f"{layer}.qkv.{last}"] = jnp.concatenate([w.pop(f"{layer}.{part}.{last}") for part in "qkv"], -1)
    return w


def adam(p, g, m, v, t):
    b1, b2 = gpu_model.BETA1, gpu_model.BETA2
    g = g.astype(jnp.float32)
    m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
    return p - gpu_model.RATE * (m / (1 - b1**t)) / (jnp.sqrt(v / (1 - b2**t)) + gpu_model.EPSILON), m, v


def product_roof(side=8192):
    """TFLOP/s of a bf16 product, after a second of load."""
    a, b = (jax.random.normal(jax.random.key(i), (side, side), jnp.bfloat16) for i in range(2))
    product = jax.jit(lambda a, b: a @ b)

    def products(count):
        for _ in range(count):
            result = product(a, b)
        result.block_until_ready()

    products(5)
    gpu_model.load_for(1, lambda: products(20), lambda: None)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        products(20)
        times.append((time.perf_counter() - begin) / 20)
    return 2 * side**3 / sorted(times)[2] / 1e12


def main():
    p = gpu_model.options(__doc__)
    p.add_argument("--attention", default="cudnn", choices=["cudnn", "xla"])
    o = p.parse_args()
    c, dtype = gpu_model.sized(o), jnp.bfloat16 if o.dtype == "bf16" else jnp.float32
    attention = "xla" if o.device == "cpu" or o.dtype == "f32" else o.attention
    roof = product_roof() if o.device == "cuda" and not o.only_losses else None
    begin = time.time()

    def train_step(state, tokens, targets):
        w, m, v, t = state
        loss, g = jax.value_and_grad(lambda w: loss_of(c, attention, dtype, w, tokens, targets))(w)
        new = {name: adam(w[name], g[name], m[name], v[name], t + 1) for name in w}
        return tuple({name: of[i] for name, of in new.items()} for i in range(3)) + (t + 1,), loss

    w = joined(weights_of_weft(c) if o.only_losses else random_weights(c))
    zeros = lambda: {name: jnp.zeros_like(x) for name, x in w.items()}
    state = (w, zeros(), zeros(), jnp.float32(0))
    batch = [jnp.asarray(x) for x in gpu_model.batch_of(c)]
    del w
    jax.block_until_ready(state)
    step = jax.jit(train_step, donate_argnums=0).lower(state, *batch).compile()
    losses = []
    for number in range(o.losses):
        state, loss = step(state, *batch)
        losses.append(loss)
        if number == 0:
            loss.block_until_ready()
            compile_s = time.time() - begin
            gpu_model.first_step_done()
    losses = [float(loss) for loss in losses]
    label, common = f"jit/{attention}", dict(version=jax.__version__, compile_s=round(compile_s, 2))
    if o.only_losses:
        gpu_model.report("jax", o, c, label, losses, **common)
        return

    def steps(count):
        nonlocal state
        for _ in range(count):
            state, loss = step(state, *batch)
        loss.block_until_ready()

    block_size, times = max(1, o.steps // 4), []
    gpu_model.load_for(o.load, lambda: steps(block_size), lambda: None)
    for _ in range(5):
        begin = time.perf_counter()
        steps(block_size)
        times.append((time.perf_counter() - begin) / block_size * 1e3)
    use = step.memory_analysis()
    peak = (use.temp_size_in_bytes + use.argument_size_in_bytes + use.output_size_in_bytes - use.alias_size_in_bytes) / 2**30 if use else 0
    gpu_model.report("jax", o, c, label, losses, times, peak, roof, **common)


if __name__ == "__main__":
    main()
