"""Wait for an event instead of a fixed time."""

import time


def wait_until(condition, seconds=60):
    """Return the first true answer of `condition`, or fail after so many seconds."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < end, f"nothing happened in {seconds} seconds"
        time.sleep(0.002)
    return answer
