"""The peers' side of `leakscope-bench account`: Google's dp-accounting and riskcal, timed inside this process.

Reads one JSON object a line from stdin, answers each with one line on stdout.
"""
import json
import sys
import time


def pld(sigma, rate, steps, delta, width, reference):
    """Upper end of epsilon at the coarsest grid (halved until it suffices) that is within the width of a certified lower
    end, timed; what the library's own lower end certifies there; and the upper end at its default grid, timed."""
    from dp_accounting.pld import privacy_loss_distribution as library

    def end(grid, pessimistic):
        one = library.from_gaussian_mechanism(
            standard_deviation=sigma,
            sampling_prob=rate,
            value_discretization_interval=grid,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        return one.self_compose(steps).get_epsilon_for_delta(delta)

    def timed(grid):
        best, value = float("inf"), None
        for _ in range(3):
            clock = time.perf_counter()
            value = end(grid, True)
            best = min(best, time.perf_counter() - clock)
            if best > 5:
                break
        return best, value

    grid = 0.1
    while end(grid, True) > reference * (1 + width) and grid > 1e-6:
        grid /= 2
    seconds, upper = timed(grid)
    usual_seconds, usual = timed(1e-4)
    return {
        "seconds": seconds, "upper": upper, "grid": grid, "lower": end(grid, False),
        "usual": usual, "usual_seconds": usual_seconds,
    }


def advantage(rate, steps, target):
    """riskcal's noise multiplier for a membership advantage."""
    from riskcal.calibration import dpsgd

    clock = time.perf_counter()
    sigma = dpsgd.find_noise_multiplier_for_advantage(
        advantage=target, sample_rate=rate, num_steps=steps
    )
    return {"seconds": time.perf_counter() - clock, "sigma": float(sigma)}


for line in sys.stdin:
    ask = json.loads(line)
    kind = ask.pop("kind")
    try:
        answer = pld(**ask) if kind == "pld" else advantage(**ask)
    except ImportError as error:
        answer = {"missing": str(error)}
    print(json.dumps(answer), flush=True)
