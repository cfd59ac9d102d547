"""What is on a figure and in the table beside it, for tests that look at them."""

import csv


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def texts(figure):
    """Return the texts on a figure, without numbers at the axes, once it has been drawn."""
    from matplotlib.text import Text

    found = [(t, t.get_text().strip()) for t in figure.findobj(Text) if t.get_visible()]
    return [t for t, said in found if said and not said.isdigit() and "mathdefault" not in said]


def words(figure):
    return "\n".join(t.get_text() for t in texts(figure))


def lines(ax, method):
    """The line of a method, and what else is drawn in its colour at the top edge or at its end."""
    main = [line for line in ax.get_lines() if line.get_label() == method]
    assert len(main) == 1
    marks = [
        k
        for k in ax.get_lines()
        if k.get_marker() in ("^", "x") and k.get_color() == main[0].get_color()
    ]
    return main[0], marks
