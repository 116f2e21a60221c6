"""The peers' side of `leakscope-bench account`: Google's dp-accounting and riskcal, timed inside this process.

Reads one JSON object a line from stdin, answers each with one line on stdout.
"""
import json
import sys
import time


def pld(sigma, rate, steps, delta, width, reference):
    """Three ways to use the library, in processor seconds:
    certified: both ends, at the coarsest grid (halved from 0.1) whose interval is as narrow as asked for, or at its default
    grid of 1e-4 where none is (finer ones only cost more); usual: the upper end alone at the default grid; coarse: the upper
    end alone at the coarsest grid at which it lies within the width of somebody else's certified lower end."""
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

    def timed(grid, pessimistic):
        best, value = float("inf"), None
        for _ in range(3):
            clock = time.process_time()
            value = end(grid, pessimistic)
            best = min(best, time.process_time() - clock)
            if best > 3:
                break
        return best, value

    grid = 0.1
    while end(grid, True) > reference * (1 + width) and grid > 1e-5:
        grid /= 2
    coarse_seconds, coarse = timed(grid, True)
    usual_seconds, usual = timed(1e-4, True)
    certified = grid
    while certified > 1e-4:
        upper = end(certified, True)
        if upper - end(certified, False) <= width * upper:
            break
        certified = max(certified / 2, 1e-4)
    (first, upper), (second, lower) = timed(certified, True), timed(certified, False)
    return {
        "certified": {"grid": certified, "lower": lower, "upper": upper, "seconds": first + second},
        "usual": {"grid": 1e-4, "upper": usual, "seconds": usual_seconds},
        "coarse": {"grid": grid, "upper": coarse, "seconds": coarse_seconds},
    }


def advantage(rate, steps, target):
    """riskcal's noise multiplier for a membership advantage."""
    from riskcal.calibration import dpsgd

    clock = time.process_time()
    sigma = dpsgd.find_noise_multiplier_for_advantage(
        advantage=target, sample_rate=rate, num_steps=steps
    )
    return {"seconds": time.process_time() - clock, "sigma": float(sigma)}


for line in sys.stdin:
    ask = json.loads(line)
    kind = ask.pop("kind")
    try:
        answer = pld(**ask) if kind == "pld" else advantage(**ask)
    except ImportError as error:
        answer = {"missing": str(error)}
    print(json.dumps(answer), flush=True)
