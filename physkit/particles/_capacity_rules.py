"""How large arrays of fixed size are made for counts that vary."""

import math


def round_up_to_eight(number: float | int) -> int:
    """`number` rounded up to a multiple of eight, the width of a vector."""
    return 8 * math.ceil(number / 8)


def round_up_by_an_eighth(number: float | int) -> int:
    """`number` rounded up to a size that serves numbers near it, too, so that they share a program.

    Sizes are multiples of eight, and of an eighth to a fourth of themselves.
    """
    step = max(8, 2 ** math.floor(math.log2(max(number, 1)) - 2))
    return step * math.ceil(number / step)


def capacity_for(count: float | int) -> int:
    """Capacity for a count that is `count` now and fluctuates."""
    # Counts of particles that are placed independently have the root of the mean as standard deviation.
    return round_up_to_eight(1.05 * count + 2 * math.sqrt(max(count, 0.0)))


def capacity_for_maximum(maximum: int, mean: float | int) -> int:
    """Capacity for a count that is at most `maximum` now and `mean` on average.

    In a crystal all counts are equal; once it has melted, they fluctuate by the root of the mean. More than
    twice that is rare.
    """
    return round_up_to_eight(max(1.05 * maximum, mean + 2 * math.sqrt(mean)))
