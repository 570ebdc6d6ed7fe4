"""Adam of bf16 weights with f32 masters, as one kernel in Triton: 28 bytes for each weight."""
import triton
import triton.language as tl


@triton.jit
def kernel(p, g, w, m, v, n, lr, c1, c2, b1: tl.constexpr, b2: tl.constexpr, eps: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    k = i < n
    G = tl.load(g + i, mask=k).to(tl.float32)
    M = b1 * tl.load(m + i, mask=k) + (1 - b1) * G
    V = b2 * tl.load(v + i, mask=k) + (1 - b2) * G * G
    W = tl.load(w + i, mask=k) - lr * (M * c1) / (tl.sqrt(V * c2) + eps)
    tl.store(m + i, M, mask=k)
    tl.store(v + i, V, mask=k)
    tl.store(w + i, W, mask=k)
    tl.store(p + i, W.to(tl.bfloat16), mask=k)


def step(p, g, w, m, v, rate, c1, c2, beta1, beta2, epsilon):
    n = p.numel()
    kernel[(triton.cdiv(n, 1024),)](p, g.contiguous(), w, m, v, n, rate, c1, c2, beta1, beta2, epsilon, BLOCK=1024, num_warps=4)
