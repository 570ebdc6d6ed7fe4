#!/usr/bin/env python3
"""The large models of `weft bench lm` in PyTorch: forward, backward and Adam of a decoder-only transformer.

Weights, their Adam state and the statistics of norms, softmax and loss are f32; products, the residual stream and the inputs
and outputs of norms have --dtype. The first weights and the batch are those of Weft. Adam is
  --opt fused    f32 weights that the compiled forward casts, torch's fused AdamW without decay
  --opt master   bf16 weights and gradients, f32 masters updated by a kernel in Triton (28 bytes for each weight)
--mode is torch.compile's, or eager; --regional compiles each block once; --graph also captures the whole step as one CUDA
graph. Prints a JSON line for each variant that it has timed.

  python gpu_torch_lm.py --config gpt2-124m --opt master
  python gpu_torch_lm.py --config gpt2-124m --set layers=2,vocab=1024,batch=2,length=64 --device cpu --mode eager --only-losses
"""
import math
import time

import gpu_model
import torch
import torch.nn.functional as F
from torch import nn

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


class Norm(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w = nn.Parameter(torch.ones(c["d_model"]))
        self.b = nn.Parameter(torch.zeros(c["d_model"])) if c["norm"] == "ln" else None

    def forward(self, x):
        if self.b is not None:
            return F.layer_norm(x, x.shape[-1:], self.w.to(x.dtype), self.b.to(x.dtype), gpu_model.LN_EPSILON)
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + gpu_model.RMS_EPSILON)).to(x.dtype) * self.w.to(x.dtype)


class Linear(nn.Module):
    def __init__(self, inner, outer, bias):
        super().__init__()
        self.w = nn.Parameter(torch.empty(outer, inner))
        self.b = nn.Parameter(torch.zeros(outer)) if bias else None

    def forward(self, x):
        return F.linear(x, self.w.to(x.dtype), None if self.b is None else self.b.to(x.dtype))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner = c["d_model"], c["heads"] * c["d_kv"]
        self.heads, self.d_kv = c["heads"], c["d_kv"]
        self.activation = (lambda x: F.gelu(x, approximate="tanh")) if c["act"] == "gelu" else F.relu
        self.n1, self.n2 = Norm(c), Norm(c)
        self.qkv, self.out = Linear(width, 3 * inner, c["bias"]), Linear(inner, width, c["bias"])
        self.fc, self.proj = Linear(width, c["d_ff"], c["bias"]), Linear(c["d_ff"], width, c["bias"])

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(batch, length, 3, self.heads, self.d_kv).unbind(2)
        seen = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, self.heads * self.d_kv))
        return x + self.proj(self.activation(self.fc(self.n2(x))))


class LanguageModel(nn.Module):
    def __init__(self, c, dtype):
        super().__init__()
        self.dtype = dtype
        self.wte, self.wpe = (nn.Parameter(torch.empty(rows, c["d_model"])) for rows in (c["vocab"], c["length"]))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c["layers"]))
        self.nf = Norm(c)
        self.head = None if c["tied"] else nn.Parameter(torch.empty(c["vocab"], c["d_model"]))

    def embed(self, tokens):
        return (F.embedding(tokens, self.wte) + self.wpe).to(self.dtype)

    def loss(self, x, targets):
        w = self.wte if self.head is None else self.head
        logits = F.linear(self.nf(x), w.to(x.dtype))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), targets.view(-1))

    def forward(self, tokens, targets):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.loss(x, targets)

    @torch.no_grad()
    def set_weights(self, c):
        """The weights of gpu_model.weight_list, which are [in, out] where PyTorch has [out, in]."""
        for stream, (name, shape, deviation) in enumerate(gpu_model.weight_list(c)):
            if not deviation:
                continue  # zeros and ones: as made
            value = drawn(stream, shape, deviation, self.wte.device)
            if name in ("wte", "wpe"):
                getattr(self, name).copy_(value)
            elif name == "head":
                self.head.copy_(value.T)
            else:
                layer, part, _ = name.split(".")
                block = self.blocks[int(layer)]
                if part in "qkv":
                    at = "qkv".index(part) * value.shape[1]
                    block.qkv.w[at:at + value.shape[1]].copy_(value.T)
                else:
                    getattr(block, part).w.copy_(value.T)


def drawn(stream, shape, deviation, device):
    """Weights of a stream, as in docs/bench.md: splitmix64 of a counter, in wrapping i64 arithmetic on the device."""
    signed = lambda x: x - 2**64 if x >= 2**63 else x

    def splitmix64(x):
        def turned(z, by, factor):
            return (z ^ ((z >> by) & ((1 << (64 - by)) - 1))) * signed(factor)
        z = turned(turned(x + signed(0x9E3779B97F4A7C15), 30, 0xBF58476D1CE4E5B9), 27, 0x94D049BB133111EB)
        return z ^ ((z >> 31) & ((1 << 33) - 1))

    base = splitmix64(torch.tensor(1234 * 2**20 + stream, dtype=torch.int64))
    value, width, part = torch.empty(math.prod(shape), device=device), 2 * 3**0.5 * deviation, 1 << 26
    for begin in range(0, value.numel(), part):
        end = min(begin + part, value.numel())
        bits = splitmix64(base.to(device) + torch.arange(begin, end, dtype=torch.int64, device=device))
        unit = ((bits >> 40) & ((1 << 24) - 1)).float() * 2**-24
        value[begin:end] = (unit - 0.5) * torch.tensor(width, dtype=torch.float32, device=device)
    return value.view(shape)


class MasterAdam:
    """bf16 weights with bf16 gradients; f32 masters, m and v; one kernel for each tensor."""

    def __init__(self, parameters):
        import gpu_adam  # Triton is not on every machine
        self.update = gpu_adam.step
        self.p = list(parameters)
        self.master = [p.detach().float().clone() for p in self.p]
        for p in self.p:
            p.data = p.data.to(torch.bfloat16)
        self.m = [torch.zeros_like(q) for q in self.master]
        self.v = [torch.zeros_like(q) for q in self.master]
        self.t = 0

    @torch.no_grad()
    def step(self):
        self.t += 1
        c1, c2 = 1 / (1 - gpu_model.BETA1**self.t), 1 / (1 - gpu_model.BETA2**self.t)
        for p, w, m, v in zip(self.p, self.master, self.m, self.v):
            self.update(p, p.grad, w, m, v, gpu_model.RATE, c1, c2, gpu_model.BETA1, gpu_model.BETA2, gpu_model.EPSILON)


class Step:
    """Forward, backward and update of one batch."""

    def __init__(self, o, c):
        self.o = o
        with torch.device(o.device):
            self.model = LanguageModel(c, DTYPES[o.dtype])
        self.model.set_weights(c)
        self.parameters = list(self.model.parameters())
        if o.opt == "master":
            self.optimizer = MasterAdam(self.parameters)
        else:
            self.optimizer = torch.optim.AdamW(self.parameters, lr=gpu_model.RATE, betas=(gpu_model.BETA1, gpu_model.BETA2),
                                               eps=gpu_model.EPSILON, weight_decay=0, fused=True, capturable=o.device == "cuda")
        self.forward = self.compiled()
        self.batch = [torch.from_numpy(x).long().to(o.device) for x in gpu_model.batch_of(c)]

    def compiled(self):
        if self.o.mode == "eager":
            return self.model
        how = dict(mode=None if self.o.mode == "default" else self.o.mode, dynamic=False, fullgraph=True)
        if not self.o.regional:
            return torch.compile(self.model, **how)
        for block in self.model.blocks:
            block.compile(**how)
        self.model.embed, self.model.loss = (torch.compile(f, **how) for f in (self.model.embed, self.model.loss))
        return self.model

    def __call__(self):
        if self.o.mode == "reduce-overhead":
            torch.compiler.cudagraph_mark_step_begin()
        loss = self.forward(*self.batch)
        loss.backward()
        self.optimizer.step()
        for p in self.parameters:
            p.grad = None
        return loss

    def captured(self):
        """The whole step as one CUDA graph."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self()
        return graph.replay


def product_roof(side=8192):
    """TFLOP/s of a bf16 product, after a second of load."""
    a, b = (torch.randn(side, side, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    gpu_model.load_for(1, lambda: [a @ b for _ in range(20)], torch.cuda.synchronize)
    times = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(10):
            a @ b
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) / 10)
    return 2 * side**3 / sorted(times)[2] / 1e9


def timed(o, step):
    """Milliseconds of each step. The host waits for none of them."""
    if o.device == "cpu":
        gpu_model.load_for(o.load, step, lambda: None)
        times = []
        for _ in range(o.steps):
            begin = time.time()
            step()
            times.append((time.time() - begin) * 1e3)
        return times
    gpu_model.load_for(o.load, step, torch.cuda.synchronize)
    for _ in range(4):
        step()
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(o.steps + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) for a, b in zip(events, events[1:])]


def parser():
    p = gpu_model.options(__doc__)
    p.add_argument("--mode", default="default", help="default, reduce-overhead, max-autotune-no-cudagraphs or eager")
    p.add_argument("--opt", default="fused", choices=["fused", "master"])
    p.add_argument("--sdpa", default="cudnn", choices=["cudnn", "flash"])
    p.add_argument("--regional", action="store_true", help="compile each block once")
    p.add_argument("--graph", action="store_true", help="also time the whole step as one CUDA graph")
    return p


def main():
    o = parser().parse_args()
    c = gpu_model.sized(o)
    roof = None
    if o.device == "cuda":
        torch.backends.cuda.enable_flash_sdp(o.sdpa == "flash")
        torch.backends.cuda.enable_cudnn_sdp(o.sdpa == "cudnn")
        torch.backends.cuda.enable_mem_efficient_sdp(False)
        torch.backends.cuda.enable_math_sdp(o.dtype == "f32")
        roof = None if o.only_losses else product_roof()
    label = f"{o.mode}{'+regional' if o.regional else ''}/{o.sdpa}/{o.opt}"
    begin = time.time()
    step = Step(o, c)
    losses = [step().detach().clone()]
    first = losses[0].item()
    gpu_model.first_step_done()
    setup_s = time.time() - begin
    losses += [step().detach().clone() for _ in range(o.losses - 1)]
    losses = [loss.item() for loss in losses]
    common = dict(version=torch.__version__, compile_s=round(setup_s, 2))
    if o.only_losses:
        gpu_model.report("torch", o, c, label, losses, **common)
        return

    def measure(variant, run):
        ms = timed(o, run)
        peak = torch.cuda.max_memory_allocated() / 2**30 if o.device == "cuda" else gpu_model.resident_gib()
        gpu_model.report("torch", o, c, variant, losses, ms, peak, roof, ms_mean=round(sum(ms) / len(ms), 3), **common)

    measure(label, step)
    if o.graph:
        measure(label + "+whole-step graph", step.captured())
    assert first == losses[0]


if __name__ == "__main__":
    main()
