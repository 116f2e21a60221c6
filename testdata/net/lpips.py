"""Golden values of LPIPS: the lpips package with AlexNet, all weights from a counter, so that no trained ones are needed.

    python -m venv /tmp/l && /tmp/l/bin/pip install torch torchvision lpips && /tmp/l/bin/python lpips.py > lpips.json

Run it from another folder: this file has the name of the package.
"""

import json
import sys

sys.path = [p for p in sys.path if not p.endswith("testdata/net")]
import lpips
import torch
import torch.nn.functional as F


def values(seed, count):
    """Numbers between −½ and ½ from a linear congruential generator of 32 bits: the same everywhere."""
    state, out = seed, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        out.append(state / 2**32 - 0.5)
    return torch.tensor(out, dtype=torch.float64)


def image(seed, height, width, channels):
    """Between −1 and 1, channels first."""
    return (2 * values(seed, height * width * channels)).reshape(1, height, width, channels).permute(0, 3, 1, 2)


model = lpips.LPIPS(net="alex", pretrained=False, pnet_rand=True, verbose=False).double().eval()
# the package keeps these in single precision; here as they are defined
for name, values_of in (("shift", [-0.030, -0.088, -0.188]), ("scale", [0.458, 0.448, 0.450])):
    setattr(model.scaling_layer, name, torch.tensor(values_of, dtype=torch.float64)[None, :, None, None])
layers = [m for s in range(1, 6) for m in getattr(model.net, f"slice{s}") if isinstance(m, torch.nn.Conv2d)]
with torch.no_grad():
    for i, conv in enumerate(layers):
        fan_in = conv.weight[0].numel()
        weight = values(10 + i, conv.weight.numel()) * (24 / fan_in) ** 0.5
        conv.weight.copy_(weight.reshape(conv.weight.shape))
        conv.bias.copy_(values(20 + i, conv.bias.numel()))
    for i, lin in enumerate(model.lins):
        # weights of the published ones are not negative
        lin.model[-1].weight.copy_((values(30 + i, lin.model[-1].weight.numel()) + 0.5).reshape(lin.model[-1].weight.shape))
    cases = []
    for seed, height, width, channels in [(1, 64, 64, 3), (2, 40, 33, 3), (3, 32, 32, 1), (4, 28, 28, 1), (5, 20, 30, 3)]:
        a, b = image(seed, height, width, channels), image(seed + 100, height, width, channels)
        x, y = [v.expand(1, 3, height, width) for v in (a, b)]
        if min(height, width) < 31:
            x, y = [F.interpolate(v, size=(64, 64), mode="bilinear", align_corners=False) for v in (x, y)]
        case = {"seed": seed, "height": height, "width": width, "channels": channels}
        cases.append(case | {"lpips": float(model(x, y)), "itself": float(model(x, x))})
json.dump({"cases": cases}, sys.stdout, indent=1)
print()
