"""Training functions for tests, at the top of a module so that other processes can import them."""

import json
import time

import numpy as np


def train(method, lr, seed, steps=20):
    """Minimize x^2; the loss curve, which ends with NaN where x is too large."""
    x = 3.0 + 0.5 * seed
    losses = [x**2]
    for _ in range(steps):
        x -= lr * (2 * x if method == "gradient" else np.sign(x))
        losses.append(x**2 if abs(x) < 1e6 else np.nan)
    return losses


def final_only(method, lr, seed):
    return train(method, lr, seed)[-1]


def fails(method, lr, seed):
    raise RuntimeError("out of memory")


def slow(method, lr, seed):
    """Note which runs begin."""
    with open("log", "a") as file:
        file.write(json.dumps([method, lr, seed]) + "\n")
    time.sleep(0.2)
    return train(method, lr, seed)
