"""The peer of gpu.rs in PyTorch: clipped gradients of the CNN of Edmunds table B.7 (f32) as a careful user writes them with the
mathematics of pairs in hand (MATHS 5.1): unfold, products, Gram matrices, compiled by torch.compile in mode max-autotune. No gradient
of a record is ever an array but that of the first convolution, which is small. `leakscope-bench gpu PYTHON` runs it.
Usage: python gpu_torch.py [batch]   (needs torch and a GPU). Prints, tab-separated: what, records a second by the clock (the best of
thirty runs), records per second of processor time. Before that it checks itself against autograd, record by record, in f64.
"""
import sys
import time

import torch
import torch.nn.functional as F

batch = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
device = "cuda" if torch.cuda.is_available() else "cpu"
C = 8.0
shapes = [(16, 64), (16,), (32, 256), (32,), (32, 512), (32,), (10, 32), (10,)]
torch.manual_seed(0)
torch.set_float32_matmul_precision("highest")


def loss(theta, x, y):
    """The loss of one record (28, 28), by layers: what autograd differentiates for the check."""
    w1, b1, w2, b2, w3, b3, w4, b4 = theta
    h = F.avg_pool2d(torch.tanh(F.conv2d(x[None, None], w1.view(16, 1, 8, 8), b1, stride=2, padding=2)), 2, 1)
    h = F.avg_pool2d(torch.tanh(F.conv2d(h, w2.view(32, 16, 4, 4), b2, stride=2)), 2, 1)
    z = torch.tanh(h.reshape(1, -1) @ w3.T + b3) @ w4.T + b4
    return F.cross_entropy(z, y[None])


def scale(n):
    return 1.0 / (F.gelu(n / C - 1.0) + 1.0)


def unpool(d):
    """The transpose of a mean over 2 x 2 windows one apart: the same mean over what is padded by zeros."""
    return F.avg_pool2d(F.pad(d, (1, 1, 1, 1)), 2, 1)


def clipped(theta, x, onehot):
    """Sums of clipped gradients of records (B, 28, 28), and their norms."""
    w1, b1, w2, b2, w3, b3, w4, b4 = theta
    n = x.shape[0]
    a1 = F.unfold(x[:, None], 8, padding=2, stride=2)
    h1 = torch.tanh(w1 @ a1 + b1[:, None])
    a2 = F.unfold(F.avg_pool2d(h1.view(n, 16, 13, 13), 2, 1), 4, stride=2)
    h2 = torch.tanh(w2 @ a2 + b2[:, None])
    a3 = F.avg_pool2d(h2.view(n, 32, 5, 5), 2, 1).reshape(n, 512)
    a4 = torch.tanh(a3 @ w3.T + b3)
    d4 = torch.softmax(a4 @ w4.T + b4, 1) - onehot
    d3 = (d4 @ w4) * (1 - a4 * a4)
    d2 = (unpool((d3 @ w3).view(n, 32, 4, 4)).reshape(n, 32, 25)) * (1 - h2 * h2)
    d1 = unpool(F.fold(w2.T @ d2, (12, 12), 4, stride=2)).reshape(n, 16, 169) * (1 - h1 * h1)
    # conv 1: 1,040 parameters, fewer than its 169 x 169 Gram matrices
    g1, gb1 = d1 @ a1.mT, d1.sum(2)
    square = (
        (d4 * d4).sum(1) * ((a4 * a4).sum(1) + 1)
        + (d3 * d3).sum(1) * ((a3 * a3).sum(1) + 1)
        + ((a2.mT @ a2 + 1) * (d2.mT @ d2)).sum((1, 2))
        + (g1 * g1).sum((1, 2))
        + (gb1 * gb1).sum(1)
    )
    norm = square.sqrt()
    s = scale(norm)
    e4, e3, e2 = s[:, None] * d4, s[:, None] * d3, s[:, None, None] * d2
    sums = (
        (s @ g1.reshape(n, -1)).view(16, 64),
        s @ gb1,
        torch.einsum("bot,bkt->ok", e2, a2),
        e2.sum((0, 2)),
        e3.T @ a3,
        e3.sum(0),
        e4.T @ a4,
        e4.sum(0),
    )
    return sums, norm


def check():
    theta = [0.3 * torch.randn(s, dtype=torch.float64) for s in shapes]
    x, y = torch.rand(5, 28, 28, dtype=torch.float64), torch.arange(5) % 10
    sums, _ = clipped(theta, x, F.one_hot(y, 10).double())
    expected = [torch.zeros_like(t) for t in theta]
    for i in range(5):
        leaves = [t.clone().requires_grad_() for t in theta]
        g = torch.autograd.grad(loss(leaves, x[i], y[i]), leaves)
        s = scale(sum((v * v).sum() for v in g).sqrt())
        expected = [e + s * v for e, v in zip(expected, g)]
    for found, e in zip(sums, expected):
        assert torch.allclose(found, e, rtol=1e-9, atol=1e-10), "the peer does not compute clipped gradients"


def rate(name, f):
    wait = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    for _ in range(5):
        f()
    wait()
    best, before, runs = float("inf"), time.process_time(), 30
    for _ in range(runs):
        t = time.perf_counter()
        f()
        wait()
        best = min(best, time.perf_counter() - t)
    core = (time.process_time() - before) / runs
    print(f"{name}\t{batch / best}\t{batch / core}", flush=True)


check()
theta = [0.1 * torch.randn(s, device=device) for s in shapes]
x = torch.rand(batch, 28, 28, device=device)
onehot = F.one_hot(torch.arange(batch, device=device) % 10, 10).float()
with torch.no_grad():
    rate("clipped gradients, pairs, eager", lambda: clipped(theta, x, onehot))
    compiled = torch.compile(clipped, mode="max-autotune", dynamic=False)
    rate("clipped gradients, pairs, compiled", lambda: compiled(theta, x, onehot))
