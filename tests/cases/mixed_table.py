"""A CSV file of thirty columns of all kinds, and how to run a command on such files."""

import numpy as np

ODD = "<img src=x onerror=alert(1)>"


def columns(rows=300, seed=0):
    """Return columns by name: numbers, words, truth values, counts, a constant; three targets."""
    rng = np.random.default_rng(seed)
    made = {f"x{j}": (rng.standard_normal(rows) * 10.0 ** (j % 4 - 1)).round(4) for j in range(23)}
    made |= {
        "city": rng.choice(["Rome", "Oslo", "Bern"], rows),
        "sex": rng.choice(["m", "f"], rows),
        "flag": rng.choice(["True", "False"], rows),
        "count": rng.integers(0, 9, rows),
        "constant": np.full(rows, 7),
        'name, with "quotes"': rng.standard_normal(rows).round(3),
        ODD: rng.choice(["<b>", "\x1b[31mred"], rows),
    }
    score = made["x0"] / made["x0"].std() + (made["city"] == "Rome") + rng.standard_normal(rows)
    made |= {
        "score": score.round(5),
        "ill": np.where(score > 0.3, "yes", "no"),
        "grade": np.digitize(score, [-1, 0, 1]),
    }
    return made


def write(path, made):
    """A CSV file of columns."""
    import csv

    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([made, *zip(*made.values(), strict=True)])
    return path


def target(name):
    """The options that choose one of the three targets."""
    others = [other for other in ("score", "ill", "grade") if other != name]
    return ["--target", name, *(word for other in others for word in ("--drop", other))]
