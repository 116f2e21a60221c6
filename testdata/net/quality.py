"""Golden values of image quality: SSIM of scikit-image, HaarPSI of piq, and HaarPSI once more from its definition in numpy.

    python -m venv /tmp/q && /tmp/q/bin/pip install numpy scipy scikit-image torch piq && /tmp/q/bin/python quality.py > quality.json
"""

import json
import sys

import numpy as np
import piq
import torch
from scipy.signal import convolve2d
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity


def pixel(case, y, x, c, k):
    """The same picture on both sides: a pattern without a generator, between 0 and 1."""
    v = np.sin(0.9 * y * (1 + case) + 1.7 * x + 2.3 * c) * np.cos(0.31 * x * y + 0.5 * k * (1 + y % 3))
    return 0.5 + 0.5 * v


def image(case, h, w, channels, k):
    return np.array([[[pixel(case, y, x, c, k) for c in range(channels)] for x in range(w)] for y in range(h)])


def same(image, kernel):
    """The central part of a convolution, an even kernel reaching one further down and right."""
    turned = convolve2d(np.rot90(image, 2), np.rot90(kernel, 2), mode="same")
    return np.rot90(turned, 2)


def haar_psi(a, b):
    def grey(image):
        planes = [image[:, :, c] * 255 for c in range(image.shape[2])]
        if len(planes) == 1:
            return [planes[0]]
        m = [[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]]
        return [sum(w * p for w, p in zip(row, planes)) for row in m]

    def half(p):
        return same(p, np.ones((2, 2)) / 4)[::2, ::2]

    def coefficients(p, scale, turned):
        k = 2.0**-scale * np.ones((2**scale, 2**scale))
        k[: k.shape[0] // 2] *= -1
        return np.abs(same(p, k.T if turned else k))

    xs, ys = [half(p) for p in grey(a)], [half(p) for p in grey(b)]
    c, alpha = 30.0, 4.2
    like = lambda u, v: (2 * u * v + c) / (u**2 + v**2 + c)
    weights, similarity = [], []
    for turned in (False, True):
        u = [coefficients(xs[0], s, turned) for s in (1, 2, 3)]
        v = [coefficients(ys[0], s, turned) for s in (1, 2, 3)]
        weights.append(np.maximum(u[2], v[2]))
        similarity.append((like(u[0], v[0]) + like(u[1], v[1])) / 2)
    if len(xs) == 3:
        blur = lambda p: np.abs(same(p, np.ones((2, 2)) / 4))
        weights.append((weights[0] + weights[1]) / 2)
        similarity.append((like(blur(xs[1]), blur(ys[1])) + like(blur(xs[2]), blur(ys[2]))) / 2)
    logistic = lambda v: 1 / (1 + np.exp(-alpha * v))
    w, s = np.array(weights), np.array(similarity)
    mean = np.sum(logistic(s) * w) / np.sum(w)
    return float((np.log(mean / (1 - mean)) / alpha) ** 2)


cases = []
for case, (h, w, channels, k) in enumerate([(28, 28, 1, 1.0), (28, 28, 1, 0.05), (32, 32, 3, 0.3), (17, 24, 1, 0.5), (40, 19, 3, 2.0)]):
    a, b = image(case, h, w, channels, 0.0), image(case, h, w, channels, k)
    ssim = structural_similarity(
        a, b, data_range=1.0, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, channel_axis=2
    )
    tensor = lambda v: torch.tensor(v.transpose(2, 0, 1)[None])
    row = {
        "case": case, "height": h, "width": w, "channels": channels, "k": k,
        "mse": float(mean_squared_error(a, b)), "psnr": float(peak_signal_noise_ratio(a, b, data_range=1.0)),
        "ssim": float(ssim), "haar_psi": haar_psi(a, b),
        "haar_psi_piq": float(piq.haarpsi(tensor(a), tensor(b), data_range=1.0)),
    }
    cases.append(row)
json.dump({"cases": cases}, sys.stdout, indent=1)
print()
