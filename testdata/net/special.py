"""Values of exp, tanh and erf to 40 digits (mpmath), rounded to f64: special.json.

Points: random f32 numbers, so that they are exact in both types, denser near zero.
Usage: python special.py
"""
import json
import struct
import random
from mpmath import mp, mpf, exp, tanh, erf

mp.dps = 40
random.seed(1)


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


points = [f32(random.uniform(-1, 1) * 10 ** random.uniform(-6, 1.3)) for _ in range(1500)]
# The exact value as the nearest f64 and the rest, so that an error can be measured below one ulp.
def split(v):
    hi = float(v)
    return [hi, float(v - mpf(hi))]


rows = [{"x": x, "exp": split(exp(mpf(x))), "tanh": split(tanh(mpf(x))), "erf": split(erf(mpf(x)))} for x in points]
with open("special.json", "w") as f:
    json.dump(rows, f)
