"""What the Opacus tracker costs beside the step that it watches: processor time of one thread, so that a busy machine does not count.

    python bench/tracker.py [steps]
"""

import sys
import time
import warnings

import opacus
import torch
from torch import nn

import leakscope.opacus
from leakscope._opacus_schedule import FIRST

BATCH, SIDE = 32, 28


def network():
    """1.2 million parameters, most of them in the first dense layer, as in the usual convolutional networks."""
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10))


def run(steps, **tracked):
    """Processor seconds of a step, and of the tracker in it."""
    torch.manual_seed(0)
    x, y = torch.randn(60 * BATCH, 1, SIDE, SIDE), torch.randint(0, 10, (60 * BATCH,))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=BATCH)
    model = network()
    engine = opacus.PrivacyEngine()
    model, optimizer, loader = engine.make_private(module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.05),
                                                   data_loader=loader, noise_multiplier=1.0, max_grad_norm=1.0)
    criterion = nn.CrossEntropyLoss()
    if tracked:
        leakscope.opacus.track(engine, optimizer, model, criterion, loader, seed=1, **tracked)
    done, start = 0, 0.0
    while True:
        for images, labels in loader:
            if done == FIRST:
                start = time.process_time()  # the first steps allocate, and are measured whatever they cost
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()
            done += 1
            if done == FIRST + steps:
                return (time.process_time() - start) / steps


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    plain = run(steps)
    print(f"{sum(p.numel() for p in network().parameters())} parameters, batches of {BATCH}: a step of Opacus takes {1e3 * plain:.0f} ms")
    for every in (1, 2, 4, 8):
        added = run(steps, every=every, probes=2) / plain - 1
        print(f"two probes, every={every}: {100 * added:+.0f}%")
    for cost in (0.3, 0.1):
        added = run(6 * steps, cost=cost, probes=2) / plain - 1
        print(f"two probes, cost={cost}: {100 * added:+.0f}% over {6 * steps} steps")
    known = leakscope.opacus.known
    leakscope.opacus.known = lambda functional: False
    print(f"two probes, every=1, record by record (vmap): {100 * (run(steps, every=1, probes=2) / plain - 1):+.0f}%")
    leakscope.opacus.known = known


if __name__ == "__main__":
    main()
