#!/usr/bin/env python3
"""The step of `weft bench lm` in PyTorch on CPU. Prints one JSON line, by the first process.

  python torch_lm.py --config small --threads 2 [--mode compile] [--bf16]
  python -m torch.distributed.run --nproc_per_node 2 torch_lm.py --mesh all:2 --layout batch:all
  python -m torch.distributed.run --nproc_per_node 2 torch_lm.py --mesh all:2 --layout "heads:all;d_ff:all;vocab:all"

Several processes are DDP if the layout splits the batch alone, else DTensor over heads, d_ff and vocab; both by gloo.
"""
import time

BEGIN = time.time()  # set-up counts the imports

import contextlib
import os

import lm_model
import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["d_model"], c["heads"] * c["d_kv"]
        self.d_kv = c["d_kv"]
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=lm_model.NORM_EPSILON) for _ in range(2))
        self.wq, self.wk, self.wv = (nn.Linear(width, inner, bias=False) for _ in range(3))
        self.wo = nn.Linear(inner, width, bias=False)
        self.wi, self.wf = nn.Linear(width, c["d_ff"], bias=False), nn.Linear(c["d_ff"], width, bias=False)

    def forward(self, x):
        batch, length = x.shape[:2]
        h = self.norm1(x)
        q, k, v = (w(h).view(batch, length, -1, self.d_kv).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(seen.transpose(1, 2).reshape(batch, length, -1))
        return x + self.wf(F.relu(self.wi(self.norm2(x))))


class Positions(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.table = nn.Parameter(torch.zeros(c["length"], c["d_model"]))

    def forward(self, x):
        return x + self.table


class LanguageModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(c["vocab"], c["d_model"]), Positions(c)
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["layers"]))
        self.norm = nn.LayerNorm(c["d_model"], eps=lm_model.NORM_EPSILON)
        self.logits = nn.Linear(c["d_model"], c["vocab"], bias=False)

    def forward(self, tokens):
        x = self.positions(self.embedding(tokens))
        for layer in self.layers:
            x = layer(x)
        return self.logits(self.norm(x))

    @torch.no_grad()
    def set_weights(self, arrays):
        """From the arrays of lm_model, which are [in, out] where PyTorch has [out, in]."""
        for name, array in arrays.items():
            value, (path, _, last) = torch.from_numpy(array), name.rpartition(".")
            if last in ("scale", "bias"):
                self.get_submodule(dotted(path)).get_parameter("weight" if last == "scale" else "bias").copy_(value)
            elif name == "embedding":
                self.embedding.weight.copy_(value)
            elif name == "positions":
                self.positions.table.copy_(value)
            else:
                linear = self.get_submodule(dotted(name))
                linear.weight.copy_(value.reshape(linear.in_features, linear.out_features).T)


def dotted(name):
    """"layer3.wq" as PyTorch has it: "layers.3.wq"."""
    layer, dot, rest = name.partition(".")
    return f"layers.{layer[5:]}.{rest}" if dot and layer.startswith("layer") else name


def tensor_parallel(model, world):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    plan = {"embedding": RowwiseParallel(input_layouts=Replicate(), output_layouts=Replicate()),
            "logits": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)}
    for i in range(len(model.layers)):
        plan |= {f"layers.{i}.{name}": ColwiseParallel() for name in ("wq", "wk", "wv", "wi")}
        plan |= {f"layers.{i}.{name}": RowwiseParallel() for name in ("wo", "wf")}
    return parallelize_module(model, init_device_mesh("cpu", (world,)), plan)


def optimizer_of(model, c):
    """Adam, fused; plain and split parameters must not share a group."""
    split = [p for p in model.parameters() if type(p.data).__name__ == "DTensor"]
    whole = [p for p in model.parameters() if type(p.data).__name__ != "DTensor"]
    groups = [{"params": group} for group in (whole, split) if group]
    return torch.optim.Adam(groups, lr=c["rate"], betas=(lm_model.BETA1, lm_model.BETA2), eps=lm_model.ADAM_EPSILON,
                            fused=True)


def main():
    p = lm_model.parser(__doc__)
    p.add_argument("--mode", default="eager", choices=["eager", "compile"])
    p.add_argument("--threads", type=int, default=0, help="0: the cores over the processes")
    p.add_argument("--bf16", action="store_true", help="autocast to bfloat16")
    o = p.parse_args()
    c = lm_model.CONFIGS[o.config]
    world, rank = int(os.environ.get("WORLD_SIZE", "1")), int(os.environ.get("RANK", "0"))
    torch.set_num_threads(o.threads or max(1, os.cpu_count() // world))
    model = LanguageModel(c)
    model.set_weights(lm_model.first_weights(c))
    tokens, targets = (torch.from_numpy(array).long() for array in lm_model.token_batch(c))

    kind, loss_context = "one", contextlib.nullcontext
    if world > 1:
        import torch.distributed as dist
        dist.init_process_group("gloo")
        if [dim for dim, _ in lm_model.pairs(o.layout)] == ["batch"]:
            kind, rows = "ddp", c["batch"] // world
            tokens, targets = (x[rank * rows:(rank + 1) * rows] for x in (tokens, targets))
            model = nn.parallel.DistributedDataParallel(model)
        else:
            from torch.distributed.tensor.parallel import loss_parallel
            kind, loss_context, model = "dtensor", loss_parallel, tensor_parallel(model, world)
    run = torch.compile(model) if o.mode == "compile" else model
    optimizer = optimizer_of(model, c)
    cast = (lambda: torch.autocast("cpu", dtype=torch.bfloat16)) if o.bf16 else contextlib.nullcontext

    losses, seconds, setup_s = [], [], 0
    for step in range(o.warmup + o.steps):
        if world > 1:
            dist.barrier()
        begin = time.time()
        with loss_context():
            with cast():
                logits = run(tokens)
            loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if world > 1:
            dist.barrier()
        end = time.time()
        value = loss.detach()
        if kind == "dtensor" and type(value).__name__ == "DTensor":
            value = value.full_tensor()
        if kind == "ddp":
            value = value.clone()
            dist.all_reduce(value)
            value /= world
        losses.append(float(value))
        setup_s = end - BEGIN if step == 0 else setup_s
        if step >= o.warmup:
            seconds.append(end - begin)

    memory = lm_model.resident_mb()
    if world > 1:
        total = torch.tensor([memory], dtype=torch.float64)
        dist.all_reduce(total)
        memory = float(total)
    if rank == 0:
        lm_model.report(f"torch-{o.mode}-{kind}" + ("-bf16" if o.bf16 else ""), o, losses, seconds, setup_s, memory,
                        threads=torch.get_num_threads(), processes=world, version=torch.__version__)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
