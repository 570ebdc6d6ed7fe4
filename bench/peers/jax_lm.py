#!/usr/bin/env python3
"""The step of `weft bench lm` in JAX on CPU: jit, with shardings over as many CPU devices as the mesh has.

  python jax_lm.py --config small --mesh "rows:2;cols:2" --layout "batch:rows;heads:cols;d_ff:cols;vocab:cols"

Prints one JSON line.
"""
import time

BEGIN = time.time()  # set-up counts the imports

import os

import lm_model
import numpy as np


def main():
    o = lm_model.parser(__doc__).parse_args()
    c = lm_model.CONFIGS[o.config]
    axes = [(name, int(size)) for name, size in lm_model.pairs(o.mesh)]
    rules = dict(lm_model.pairs(o.layout))
    count = int(np.prod([size for _, size in axes]))
    if count > 1:  # before jax is imported
        os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={count}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(jax.devices()[:count]).reshape([size for _, size in axes]), [name for name, _ in axes])

    def sharding(*dims):
        return NamedSharding(mesh, PartitionSpec(*[rules.get(dim) for dim in dims]))

    def laid(x, *dims):
        return jax.lax.with_sharding_constraint(x, sharding(*dims)) if count > 1 else x

    def norm(w, name, x):
        mean = x.mean(-1, keepdims=True)
        variance = jnp.square(x - mean).mean(-1, keepdims=True)
        scaled = (x - mean) * jax.lax.rsqrt(variance + lm_model.NORM_EPSILON)
        return scaled * w[name + ".scale"] + w[name + ".bias"]

    places = jnp.arange(c["length"])
    hidden = jnp.where(places[:, None] < places[None, :], -1e9, 0.0).astype(jnp.float32)

    def loss_of(w, tokens, targets):
        x = laid(w["embedding"][tokens] + w["positions"], "batch", "length", "d_model")
        for i in range(c["layers"]):
            layer = f"layer{i}."
            h = norm(w, layer + "norm1", x)
            q, k, v = (laid(jnp.einsum("bld,dhk->bhlk", h, w[layer + name]), "batch", "heads", "length", "d_kv")
                       for name in ("wq", "wk", "wv"))
            scores = jnp.einsum("bhlk,bhmk->bhlm", q, k) * c["d_kv"] ** -0.5
            seen = jnp.einsum("bhlm,bhmk->bhlk", jax.nn.softmax(scores + hidden, axis=-1), v)
            x = laid(x + jnp.einsum("bhlk,hkd->bld", seen, w[layer + "wo"]), "batch", "length", "d_model")
            h = jax.nn.relu(jnp.einsum("bld,df->blf", norm(w, layer + "norm2", x), w[layer + "wi"]))
            h = laid(h, "batch", "length", "d_ff")
            x = laid(x + jnp.einsum("blf,fd->bld", h, w[layer + "wf"]), "batch", "length", "d_model")
        logits = laid(jnp.einsum("bld,dv->blv", norm(w, "norm", x), w["logits"]), "batch", "length", "vocab")
        picked = jnp.where(jnp.arange(c["vocab"]) == targets[..., None], logits, 0.0).sum(-1)
        return (jax.nn.logsumexp(logits, axis=-1) - picked).mean()

    def train_step(w, m, v, rate, epsilon, tokens, targets):
        b1, b2 = lm_model.BETA1, lm_model.BETA2
        loss, g = jax.value_and_grad(loss_of)(w, tokens, targets)
        m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g)
        v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)
        w = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + epsilon), w, m, v)
        return w, m, v, loss

    shardings = {name: sharding(*dims) for name, dims, _ in lm_model.weight_list(c)}
    w = {name: jax.device_put(array, shardings[name]) for name, array in lm_model.first_weights(c).items()}
    m, v = ({name: jax.device_put(np.zeros(x.shape, np.float32), shardings[name]) for name, x in w.items()}
            for _ in range(2))
    tokens, targets = (jax.device_put(array, sharding("batch", "length")) for array in lm_model.token_batch(c))
    step = jax.jit(train_step, donate_argnums=(0, 1, 2),
                   out_shardings=(shardings, shardings, shardings, NamedSharding(mesh, PartitionSpec())))
    begin = time.time()
    step = step.lower(w, m, v, *lm_model.adam_scalars(c, 1), tokens, targets).compile()
    compile_s = time.time() - begin

    losses, seconds, setup_s, cpu_begin = [], [], 0, lm_model.cpu_seconds()
    for number in range(1, o.warmup + o.steps + 1):
        if number == o.warmup + 1:
            cpu_begin = lm_model.cpu_seconds()
        begin = time.time()
        w, m, v, loss = step(w, m, v, *lm_model.adam_scalars(c, number), tokens, targets)
        jax.block_until_ready((w, loss))
        end = time.time()
        losses.append(float(loss))
        setup_s = end - BEGIN if number == 1 else setup_s
        if number > o.warmup:
            seconds.append(end - begin)
    lm_model.report("jax", o, losses, seconds, setup_s, compile_s=round(compile_s, 2),
                    cpu_ms_per_step=round((lm_model.cpu_seconds() - cpu_begin) * 1e3 / o.steps, 2), version=jax.__version__)


if __name__ == "__main__":
    main()
