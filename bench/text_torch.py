"""The peer of text.rs: a decoder of GPT-2's shape in PyTorch, its plain gradient, or Opacus's ghost clipping.
Usage: python text_torch.py plain|ghost THREADS name=value …   (needs torch, for ghost opacus). Prints, tab-separated: the best
seconds of a batch, and the peak of resident memory in MB. The output layer has a table of its own: ghost clipping counts no
parameter that two layers share.
"""
import resource
import sys
import time
import warnings

import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
kind, threads = sys.argv[1], int(sys.argv[2])
sizes = {name: int(value) for name, _, value in (word.partition("=") for word in sys.argv[3:])}
torch.set_num_threads(threads)
torch.manual_seed(0)
width, heads, vocabulary, length, batch = (sizes[n] for n in ("width", "heads", "vocabulary", "length", "batch"))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.behind = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        n, t, _ = x.shape
        a = self.before(x)
        q, k, v = (f(a).view(n, t, heads, -1).transpose(1, 2) for f in (self.q, self.k, self.v))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, t, width)
        x = x + self.o(seen)
        return x + self.down(F.gelu(self.up(self.behind(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block() for _ in range(sizes["blocks"]))
        self.norm, self.output = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        places = torch.arange(tokens.shape[1]).expand(tokens.shape[0], -1).contiguous()
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x)
        return self.output(self.norm(x))


model = Decoder()
x, y = (torch.randint(vocabulary, (batch, length)) for _ in range(2))
if kind == "ghost":
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    model = GradSampleModuleFastGradientClipping(model, max_grad_norm=1.0, use_ghost_clipping=True)
    inner = torch.optim.SGD(model.parameters(), lr=0.0)
    optimizer = DPOptimizerFastGradientClipping(inner, noise_multiplier=0.0, max_grad_norm=1.0, expected_batch_size=batch)
    criterion = DPLossFastGradientClipping(model, optimizer, nn.CrossEntropyLoss(reduction="mean"), "mean")


def plain():
    model.zero_grad(set_to_none=True)
    F.cross_entropy(model(x).flatten(0, 1), y.flatten()).backward()


def ghost():
    optimizer.zero_grad()
    # by its shape the criterion takes the mean over the tokens of each text
    criterion(model(x).flatten(0, 1), y.flatten(), shape=(batch, length, vocabulary)).backward()


run = {"plain": plain, "ghost": ghost}[kind]
best = float("inf")
for _ in range(3):
    started = time.perf_counter()
    run()
    best = min(best, time.perf_counter() - started)
# Linux counts in KB
print(f"{best}\t{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}")
