"""The peer of inversion.rs: gradient inversion as published (Geiping 2020) in PyTorch, on the CNN of Edmunds table B.7.
Usage: python inversion_torch.py [threads]   (needs torch). Prints, tab-separated: what, iterations of a record a second.
"""
import sys
import time

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 2)
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 16, 8, 2, 2), nn.Tanh(), nn.AvgPool2d(2, 1), nn.Conv2d(16, 32, 4, 2), nn.Tanh(), nn.AvgPool2d(2, 1),
    nn.Flatten(), nn.Linear(512, 32), nn.Tanh(), nn.Linear(32, 10),
)
cross_entropy = nn.CrossEntropyLoss()


def variation(x):
    return (x[..., 1:] - x[..., :-1]).abs().mean(dim=(-3, -2, -1)) + (x[..., 1:, :] - x[..., :-1, :]).abs().mean(dim=(-3, -2, -1))


def one_by_one(iterations=30):
    """A record at a time, as the published code does it."""
    parameters = list(net.parameters())
    x = torch.rand(1, 1, 28, 28)
    y = torch.tensor([3])
    target = [g.detach() for g in torch.autograd.grad(cross_entropy(net(x), y), parameters)]
    guess = torch.randn(1, 1, 28, 28, requires_grad=True)
    adam = torch.optim.Adam([guess], lr=0.1)
    started = time.perf_counter()
    for _ in range(iterations):
        adam.zero_grad()
        result = torch.autograd.grad(cross_entropy(net(guess), y), parameters, create_graph=True)
        inner = sum((a * b).sum() for a, b in zip(result, target))
        size = sum((a * a).sum() for a in result).sqrt() * sum((b * b).sum() for b in target).sqrt()
        (1 - inner / size + 1e-4 * variation(guess).sum()).backward()
        guess.grad.sign_()
        adam.step()
        with torch.no_grad():
            guess.clamp_(0, 1)
    return iterations / (time.perf_counter() - started)


def batched(records=100, iterations=5):
    """Many records at once by vmap over per-sample gradients: the best that PyTorch offers."""
    parameters = {k: v.detach() for k, v in net.named_parameters()}

    def loss(parameters, x, y):
        return cross_entropy(functional_call(net, parameters, (x[None],)), y[None])

    each = vmap(grad(loss), in_dims=(None, 0, 0))
    x, y = torch.rand(records, 1, 28, 28), torch.randint(0, 10, (records,))
    target = [v.flatten(1) for v in each(parameters, x, y).values()]
    norm = sum((v * v).sum(1) for v in target).sqrt()
    guess = torch.randn(records, 1, 28, 28, requires_grad=True)
    adam = torch.optim.Adam([guess], lr=0.1)

    def step():
        adam.zero_grad()
        result = [v.flatten(1) for v in each(parameters, guess, y).values()]
        inner = sum((a * b).sum(1) for a, b in zip(result, target))
        size = sum((a * a).sum(1) for a in result).sqrt() * norm
        (1 - inner / size + 1e-4 * variation(guess)).sum().backward()
        guess.grad.sign_()
        adam.step()
        with torch.no_grad():
            guess.clamp_(0, 1)

    step()
    started = time.perf_counter()
    for _ in range(iterations):
        step()
    return records * iterations / (time.perf_counter() - started)


one_by_one(3)
print(f"one record at a time\t{one_by_one()}")
print(f"100 records by vmap\t{batched()}")
