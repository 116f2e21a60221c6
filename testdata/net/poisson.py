"""A = q E[w] and B = q E[w xi^2] of MATHS 5.2 by mpmath at 30 digits: poisson.csv. Usage: python poisson.py"""
from mpmath import mp, mpf, quad, exp, sqrt, pi, linspace

mp.dps = 30
with open("poisson.csv", "w") as f:
    f.write("q,nu,across,along\n")
    for q in ["0.001", "0.01", "0.2", "0.9"]:
        for nu in ["0.1", "1", "2.23", "7", "15"]:
            Q, N = mpf(q), mpf(nu)
            w = lambda t: Q / (Q + (1 - Q) * exp(-N * N / 2 - N * t)) * exp(-t * t / 2) / sqrt(2 * pi)
            cuts = linspace(-14, 14, 57)
            a, b = Q * quad(w, cuts), Q * quad(lambda t: t * t * w(t), cuts)
            f.write(f"{q},{nu},{mp.nstr(a, 17)},{mp.nstr(b, 17)}\n")
