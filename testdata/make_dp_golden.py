"""Golden values for the accounting and bounds of leakscope-core, from sources that share no code with it:
mpmath (the definitions, at 50 digits) and Google's dp-accounting (its PLD and RDP accountants).

    pip install mpmath dp-accounting==0.6.0
    python testdata/make_dp_golden.py > testdata/dp_golden.json
"""
import json
import sys

import mpmath as mp

mp.mp.dps = 50
out = {}


def cdf(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


# x, Phi(x), ln Phi(x)
out["normal"] = [
    [x, float(cdf(mp.mpf(x))), float(mp.log(cdf(mp.mpf(x))))]
    for x in [-300.0, -100.0, -37.0, -20.0, -8.5, -5.0, -2.0, -1.0, -0.75, -0.1, -1e-9, 0.5, 1.0, 2.5]
]
out["erfcx"] = [
    [x, float(mp.exp(mp.mpf(x) ** 2) * mp.erfc(mp.mpf(x)))]
    for x in [-3.0, -0.5, 0.0, 0.3, 1.0, 4.7, 9.99, 10.0, 10.01, 26.0, 100.0, 1e6]
]

mp.mp.dps = 30


def density(m, sigma):
    return lambda x: mp.npdf(x, m, sigma)


def mixture(q, m, sigma):
    return lambda x: (1 - q) * mp.npdf(x, 0, sigma) + q * mp.npdf(x, m, sigma)


def pair(kind, q, sigma):
    q, sigma = mp.mpf(q), mp.mpf(sigma)
    if kind == "remove":
        return mixture(q, 1, sigma), density(0, sigma)
    if kind == "add":
        return density(0, sigma), mixture(q, 1, sigma)
    return mixture(q, 1, sigma), mixture(q, -1, sigma)


def crossing(f, g, gamma, lo, hi):
    """The point where f = gamma g, by bisection on a monotone ratio."""
    s = lambda x: mp.sign(f(x) - gamma * g(x))
    a, b = mp.mpf(lo), mp.mpf(hi)
    if s(a) == s(b):
        return None
    for _ in range(200):
        m = (a + b) / 2
        if s(m) == s(a):
            a = m
        else:
            b = m
    return (a + b) / 2


def hockey_stick(kind, q, sigma, epsilon):
    """sup_E P(E) - e^epsilon Q(E), by quadrature of the positive part."""
    f, g = pair(kind, q, sigma)
    gamma = mp.e ** mp.mpf(epsilon)
    span = 40 * sigma
    c = crossing(f, g, gamma, -span, span + 1)
    if c is None:
        return mp.mpf(0) if f(0) < gamma * g(0) else 1 - gamma
    h = lambda x: f(x) - gamma * g(x)
    lo, hi = (c - 14 * sigma - 1, c) if kind == "add" else (c, c + 14 * sigma + 1)
    nodes = [lo + (hi - lo) * i / 24 for i in range(25)]
    return mp.quad(h, nodes)


# kind, sigma, q, epsilon, delta of one step
kinds = ["remove", "add", "replace"]
out["one_step"] = [
    [k, sigma, q, e, float(hockey_stick(kind, q, sigma, e))]
    for k, kind in enumerate(kinds)
    for sigma, q, e in [
        (1.0, 0.1, 0.05), (1.0, 0.1, 0.0), (1.0, 0.1, -0.05), (0.5, 0.01, 1.0), (0.5, 0.01, 0.005), (2.0, 1.0, 0.7),
        (0.3, 0.2, 8.0), (5.0, 0.3, 0.1),
    ]
]


def rdp(kind, q, sigma, alpha):
    f, g = pair(kind, q, sigma)
    a = mp.mpf(alpha)
    h = lambda x: (f(x) / g(x)) ** a * g(x)
    top = a + 15 * sigma + 2
    nodes = [mp.mpf(-20 * sigma) + (top + 20 * sigma) * i / 60 for i in range(61)]
    return mp.log(mp.quad(h, nodes)) / (a - 1)


# kind, sigma, q, alpha, D_alpha
out["rdp"] = [
    [k, sigma, q, a, float(rdp(kinds[k], q, sigma, a))]
    for k in (0, 2)
    for sigma, q, a in [
        (1.0, 0.01, 1.5), (1.0, 0.01, 2.0), (1.0, 0.01, 7.3), (1.0, 0.01, 16.0), (0.5, 0.002, 3.25), (2.0, 0.3, 1.1),
        (2.0, 0.3, 10.5), (4.0, 0.5, 40.0), (1.0, 0.9, 2.5), (10.0, 0.05, 64.5),
    ]
]


# M, sigma, success of the optimal attack on one-hot encodings with a uniform prior
def one_hot(m, sigma):
    s = mp.mpf(sigma)
    return mp.quad(lambda z: mp.npdf(z - 1 / s) * cdf(z) ** (m - 1), [-12 + 0.5 * i for i in range(60)])


mp.mp.dps = 20
out["one_hot_optimal"] = [[m, s, float(one_hot(m, s))] for m, s in [(10, 1.0), (2, 0.5), (1000, 0.3), (10**10, 0.2)]]

import dp_accounting
from dp_accounting import rdp as g_rdp
from dp_accounting.pld import privacy_loss_distribution as g_pld

relations = [dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE, dp_accounting.NeighboringRelation.REPLACE_ONE]


def google(relation, sigma, q, t, grid):
    return g_pld.from_gaussian_mechanism(
        sigma, sampling_prob=q, value_discretization_interval=grid, neighboring_relation=relations[relation]
    ).self_compose(t)


# relation (0 add/remove, 1 replace), sigma, q, T, delta, epsilon (pessimistic estimate of dp-accounting), its grid
rows = []
for relation, sigma, q, t, delta, grid in [
    (0, 1.0, 0.01, 1000, 1e-5, 1e-4),
    (0, 0.5, 0.002, 10000, 1e-5, 1e-4),
    (0, 1.1, 256 / 60000, 14040, 1e-5, 1e-4),
    (0, 0.6, 0.2, 500, 1e-5, 1e-3),
    (0, 2.0, 0.05, 200, 1e-9, 1e-4),
    (0, 1.0, 1.0, 10, 1e-6, 1e-4),
    (1, 1.0, 0.01, 1000, 1e-5, 1e-4),
    (1, 2.0, 0.1, 100, 1e-6, 1e-4),
]:
    print(sigma, q, t, file=sys.stderr)
    rows.append([relation, sigma, q, t, delta, google(relation, sigma, q, t, grid).get_epsilon_for_delta(delta), grid])
out["google_pld_epsilon"] = rows

# relation, sigma, q, T, epsilon, delta, grid
out["google_pld_delta"] = [
    [r, s, q, t, e, google(r, s, q, t, 1e-4).get_delta_for_epsilon(e), 1e-4]
    for r, s, q, t, e in [(0, 1.0, 0.01, 1000, 0.0), (0, 1.0, 0.01, 1000, 0.5), (1, 2.0, 0.1, 100, 1.0)]
]

# sigma, T, delta, epsilon: heterogeneous composition, Laplace(b) T times beside a subsampled Gaussian
mixed = google(0, 1.0, 0.01, 500, 1e-4).compose(
    g_pld.from_laplace_mechanism(10.0, value_discretization_interval=1e-4).self_compose(5)
)
out["google_mixed"] = [[1.0, 0.01, 500, 10.0, 5, 1e-5, mixed.get_epsilon_for_delta(1e-5)]]
lap = g_pld.from_laplace_mechanism(2.0, value_discretization_interval=1e-4).self_compose(20)
out["google_laplace"] = [[2.0, 20, d, lap.get_epsilon_for_delta(d)] for d in (1e-3, 1e-6)]
rr = g_pld.from_randomized_response(0.5, 4, value_discretization_interval=1e-4).self_compose(10)
out["google_randomised_response"] = [[0.5, 4, 10, d, rr.get_epsilon_for_delta(d)] for d in (1e-2, 1e-4)]

json.dump(out, sys.stdout, indent=1)
print()
