"""Leakscope from Python beside the published way in numpy (every Jacobian and its SVD), on the same arrays in one run.

    pip install numpy, and leakscope's wheel built in release (maturin build --release -m crates/py/Cargo.toml)
    python bench/python.py

The published way takes minutes on all records: it is timed on some of them and scaled up. Where torch is installed
the same is done with its batched SVD. The third part of each table is what a call costs beyond the Rust function, by
the clock inside of it, and how much memory it needs beyond its result.
"""

import sys
import threading
import time

import numpy as np

import leakscope

SHAPES = [(30_162, 86), (12_665, 20)]
SAMPLE = 600
REPEATS = 5


def best(work, repeats=REPEATS):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


def data(n, d):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, d)) / np.sqrt(d)
    y = x @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    return x, y


def jacobians(x, y, l2, rows):
    """J of some records of a ridge regression without intercept (Hannun §4), one d × (d+1) matrix each."""
    n, d = x.shape
    h = x.T @ x + n * l2 * np.eye(d)
    w = np.linalg.solve(h, x.T @ y)
    inverse = np.linalg.inv(h)
    residual = x[rows] @ w - y[rows]
    inner = x[rows][:, :, None] * w[None, None, :] + residual[:, None, None] * np.eye(d)
    whole = np.concatenate([inner, -x[rows][:, :, None]], axis=2)
    return -inverse @ whole


def numpy_way(x, y, l2, rows):
    return np.linalg.svd(jacobians(x, y, l2, rows), compute_uv=False)[:, 0]


def torch_way(x, y, l2, rows):
    import torch

    return torch.linalg.matrix_norm(torch.from_numpy(jacobians(x, y, l2, rows)), ord=2).numpy()


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


def growth(work):
    """Peak of resident memory during `work`, beyond what was there before."""
    start, peak, stop = resident(), [0], threading.Event()

    def watch():
        while not stop.is_set():
            peak[0] = max(peak[0], resident() - start)
            time.sleep(0.0005)

    thread = threading.Thread(target=watch)
    thread.start()
    work()
    stop.set()
    thread.join()
    return peak[0]


def main():
    ways = {"numpy": numpy_way}
    try:
        import torch  # noqa: F401

        ways["torch"] = torch_way
    except ImportError:
        print("torch is not installed: its row is left out")
    for n, d in SHAPES:
        x, y = data(n, d)
        l2 = 1e-3
        options = dict(l2=l2, sigma=1.0, scale="none", fit_intercept=False)
        seconds, result = best(lambda: leakscope.audit(x, y, **options))
        t = result["timings"]
        inside = t["read"] + t["fit"] + t["leakage"]
        print(f"\n{n:,} × {d}: fit, η of records, attributes and the data set, and their table")
        print(f"  leakscope.audit            {1e3 * seconds:9.1f} ms   of which {1e3 * inside:.1f} ms in the Rust function "
              f"(read {1e3 * t['read']:.1f}, fit {1e3 * t['fit']:.1f}, leakage {1e3 * t['leakage']:.1f})")
        rows = np.random.default_rng(0).choice(n, SAMPLE, replace=False)
        eta = result.records["eta"].to_numpy()[rows]
        for name, way in ways.items():
            cost, answer = best(lambda: way(x, y, l2, rows), 1)
            error = np.max(np.abs(answer - eta) / answer)
            whole = cost * n / SAMPLE
            print(f"  every Jacobian in {name}    {1e3 * whole:9.0f} ms   ×{whole / seconds:.0f} for η alone (from {SAMPLE} records; "
                  f"largest relative difference {error:.1e})")
            assert error < 1e-8
        for name, same in (("C order, float64", x), ("Fortran order", np.asfortranarray(x)), ("float32", x.astype(np.float32))):
            seconds, _ = best(lambda: leakscope.audit(same, y, **options), 3)
            print(f"  {name:<26} {1e3 * seconds:9.1f} ms")
    x, y = data(400_000, 50)
    from leakscope import _native

    def release():
        table = _native.Table("X")
        table.matrix([f"x{j}" for j in range(x.shape[1])], x)
        table.array("y", y)
        _native.private_model({"roles": {"target": "y"}, "l2": 1e-3}, {"noise": {"target-eta": [1.0, "max"]}}, table)

    release()
    print(f"\nfit and η of 400,000 × 50 ({x.nbytes / 2**20:.0f} MiB): {growth(release) / 2**20:.0f} MiB of memory beyond the array")
    return 0


if __name__ == "__main__":
    sys.exit(main())
