"""The peers' side of `leakscope-bench account`: Google's dp-accounting and riskcal, timed inside this process.

Reads one JSON object a line from stdin, answers each with one line on stdout.
"""
import json
import sys
import time


def pld(sigma, rate, steps, delta, width):
    """Both ends of epsilon at the coarsest grid (halved until it suffices) whose interval is as narrow as asked for."""
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

    # What its users do: the upper end alone, at its default grid.
    clock = time.perf_counter()
    usual = end(1e-4, True)
    usual_seconds = time.perf_counter() - clock
    grid = 1e-2
    while True:
        clock = time.perf_counter()
        upper, lower = end(grid, True), end(grid, False)
        seconds = time.perf_counter() - clock
        if upper - lower <= width * upper or grid < 2e-7 or seconds > 120:
            return {
                "seconds": seconds, "lower": lower, "upper": upper, "grid": grid,
                "usual": usual, "usual_seconds": usual_seconds,
            }
        grid /= 2 if upper - lower < 8 * width * upper else 4


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
