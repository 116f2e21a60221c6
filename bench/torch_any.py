"""Throughput of audits of torch modules, beside the naive way; run where torch and leakscope are installed.

    python bench/torch_any.py [records] [probes] [device]

The naive way is a loop over records: a gradient with its graph kept, and a double backward pass for every probe.
"""

import sys
import time

import torch

import leakscope.torch

nn = torch.nn


def network() -> nn.Module:
    """A convolutional network of a million parameters over 32 × 32 × 3."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.SiLU(), nn.AvgPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.SiLU(), nn.AvgPool2d(2),
        nn.Conv2d(64, 128, 3, padding=1), nn.SiLU(), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(2048, 448), nn.SiLU(), nn.Linear(448, 10))


def naive(module: nn.Module, x: torch.Tensor, y: torch.Tensor, probes: int) -> None:
    """The trace of every record by double backward, one record and one probe after another."""
    parameters = list(module.parameters())
    for i in range(len(x)):
        record = x[i : i + 1].clone().requires_grad_(True)
        g = torch.autograd.grad(nn.functional.cross_entropy(module(record), y[i : i + 1]), parameters, create_graph=True)
        weights = [torch.zeros_like(v, requires_grad=True) for v in g]
        back = torch.autograd.grad(g, record, weights, create_graph=True)[0]
        for _ in range(probes):
            moved = torch.autograd.grad(back, weights, torch.randn_like(record), retain_graph=True)
            sum(float((v * v).sum()) for v in moved)


def main() -> None:
    records, probes, device = (int(sys.argv[1]) if len(sys.argv) > 1 else 64, int(sys.argv[2]) if len(sys.argv) > 2 else 10,
                               sys.argv[3] if len(sys.argv) > 3 else "cpu")
    torch.manual_seed(0)
    module = network().to(device)
    x, y = torch.randn(records, 3, 32, 32, device=device), torch.randint(0, 10, (records,), device=device)
    clock = time.process_time if device == "cpu" else time.perf_counter
    ways = {
        "naive": lambda: naive(module, x, y, probes),
        "leakscope.torch": lambda: leakscope.torch.audit(module, nn.CrossEntropyLoss(), x, y, trace=probes, engine="torch", pictures=False),
    }
    for name, way in ways.items():
        way()
        start = clock()
        way()
        if device != "cpu":
            torch.cuda.synchronize()
        print(f"{name}: {(clock() - start) / records * 1e3:.2f} ms a record, {probes} probes, {device}")


if __name__ == "__main__":
    main()
