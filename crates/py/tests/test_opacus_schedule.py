"""Which steps an Opacus tracker looks at: a function of given times, never of this machine's."""

import numpy as np
import pytest

from leakscope._opacus_schedule import FIRST, Schedule, probability


def test_the_probability_pays_for_looks():
    assert probability(0.3, [1.0], [1.4]) == pytest.approx(0.3 / 1.4)
    # what fits is done at every step
    assert probability(0.3, [1.0], [0.3]) == probability(0.3, [1.0], [0.0]) == probability(2.0, [1.0], [1.9]) == 1
    # one slow step, or one slow look, does not decide
    assert probability(0.3, [1.0, 1.0, 60.0], [1.5, 1.5, 90.0]) == pytest.approx(0.2)
    # a clock that saw nothing pass stops nothing
    assert probability(0.3, [], []) == 1 and 0 < probability(0.3, [0.0], [1.0]) < 1e-3


def run(steps, step, look, **options):
    """A run by a clock that is told: seconds in steps, seconds in looks, and for every step its share and whether it was looked at."""
    schedule = Schedule(np.random.default_rng(5), options.pop("every", None), **options)
    now, spent, seen = 0.0, 0.0, []
    for t in range(steps):
        now += step(t)
        if schedule.look():
            schedule.looked(now, now + look(t))
            now, spent = now + look(t), spent + look(t)
            seen.append((schedule.share, True))
        else:
            seen.append((schedule.share, False))
    return now - spent, spent, seen, schedule


@pytest.mark.parametrize("look", [0.1, 1.4, 3.0, 40.0])
@pytest.mark.parametrize("cost", [0.05, 0.3])
def test_looks_take_the_share_of_the_time_that_was_asked_for(look, cost):
    training, spent, seen, schedule = run(20_000, lambda t: 0.2 + 0.01 * (t % 3), lambda t: look * (0.2 + 0.01 * (t % 2)), cost=cost)
    # the first are measured in any case; the others are so many draws
    later, expected = spent - look * 0.21 * FIRST, min(cost, look) * training
    spread = np.sqrt(look * 0.21 * expected) if look > cost else 0.0
    assert abs(later - expected) < 4 * spread + 0.08 * expected
    assert all(share == 1 for share, _ in seen[:FIRST])
    # what is said of the run is what was drawn
    looks = sum(done for _, done in seen)
    assert schedule.one_in == pytest.approx(len(seen) / looks, rel=4 / np.sqrt(looks))


def test_steps_that_become_slower_leave_room_for_more_looks():
    _, _, seen, _ = run(4000, lambda t: 0.1 if t < 2000 else 0.4, lambda t: 0.3)
    assert seen[1999][0] == pytest.approx(0.1) and seen[3999][0] == pytest.approx(0.4)


def test_weighted_by_the_inverse_a_sum_is_unbiased_though_times_choose():
    """Values of steps that drift, times that follow them, as bad as can be: the mean over runs is the sum."""
    values = np.sin(np.arange(200) / 20) + 2
    result = []
    for seed in range(300):
        schedule, now, total = Schedule(np.random.default_rng(seed), None), 0.0, 0.0
        for value in values:
            now += 1.0
            if schedule.look():
                total += value / schedule.share
                schedule.looked(now, now + value)
                now += value
        result.append(total)
    error = np.std(result, ddof=1) / np.sqrt(len(result))
    assert abs(np.mean(result) - values.sum()) < 4 * error and error < 0.02 * values.sum()


def test_one_in_so_many_is_drawn_by_the_seed_alone():
    draws = []
    for pace in (1.0, 50.0):
        _, _, seen, schedule = run(1000, lambda t: pace, lambda t: 1 / pace, every=4)
        assert all(share == 0.25 for share, _ in seen) and schedule.one_in == 4
        draws.append([done for _, done in seen])
    assert draws[0] == draws[1] and 200 < sum(draws[0]) < 300
    assert all(done for _, done in run(50, lambda t: 1.0, lambda t: 9.0, every=1)[2])
