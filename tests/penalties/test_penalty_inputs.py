"""What anybody may hand to a penalty: the answer of a clean call, or a sentence. Never a crash, a raw error, a warning."""

import re

import numpy as np
import pytest

from adagrad_diff import Squared, critical_lam, minimize
from adagrad_diff import penalties as p
from adagrad_diff.duality import duality_gap
from complete import assert_complete
from looping import looped

D, B = 4, 3
RNG = np.random.default_rng(0)


class Lasso:
    """A foreign object."""

    def value(self, x):
        return np.abs(x).sum()

    def prox(self, z, step):
        return np.sign(z) * np.maximum(np.abs(z) - step, 0.0)


LABELS = [0, 1, 0, 1]
SIZED = [  # those that know how many coordinates there are
    p.L1([1.0, 0.5, 0.0, 2.0]),
    p.Ridge([1.0, 0.5, 0.0, 2.0]),
    p.ElasticNet(0.5, [1.0, 0.5, 0.0, 2.0]),
    p.Box([0.0, -1.0, 0.0, 0.0], 1.0),
    p.GroupL2(1.0, LABELS),
    p.GroupL2(1.0, [0, 1, 2, 3]),
    p.SparseGroupL2(0.3, 1.0, LABELS),
    p.SLOPE([2.0, 1.0, 0.5, 0.0]),
    p.Nuclear(0.5, (2, 2)),
    p.PSD(2),
    p.Hyperplane([1.0, 2.0, 0.0, -1.0], 1.0),
    p.HalfSpace([1.0, 2.0, 0.0, -1.0], 1.0),
    p.Affine([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]], [1.0, 0.0]),
    p.BoxHyperplane(-1.0, 1.0, [1.0, 2.0, 0.0, -1.0], 0.5),
    p.Scaled(p.GroupL2(1.0, LABELS), 2.0),
    p.Translated(p.L1(1.0), [0.5, 0.0, 0.0, 1.0]),
    p.Precomposed(p.GroupL2(1.0, LABELS), [1.0, -2.0, 1.0, 0.5]),
    p.NumericalProx(p.PSD(2)),
]
FREE = [
    p.Separable([([3], p.NonNegative()), (slice(0, 2), p.GroupL2(1.0, [0, 0])), ([2], Lasso())]),
    p.Unpenalised(p.L1([1.0, 2.0, 3.0]), free=0),
    p.Zero(),
    p.L1(0.5),
    p.Ridge(0.5),
    p.ElasticNet(0.5, 0.5),
    p.Box(-1.0, 0.5),
    p.NonNegative(),
    p.L2(0.5),
    p.LInf(0.5),
    p.HuberPenalty(1.0, 0.5),
    p.TotalVariation1D(0.5),
    p.FusedLasso(0.2, 0.5),
    p.Monotone(),
    p.Simplex(),
    p.L1Ball(1.0),
    p.L2Ball(1.0),
    p.LInfBall(0.5),
    p.Scaled(p.L2(1.0), 0.5),
    p.Translated(p.L2Ball(1.0), 0.5),
    p.Precomposed(p.LInf(1.0), 2.0),
    p.as_penalty(Lasso()),
]
ALL = FREE + SIZED
every = pytest.mark.parametrize(
    "penalty", ALL, ids=[f"{penalty.name}-{k}" for k, penalty in enumerate(ALL)]
)
together = looped("penalty", ALL)  # where the tests are one for each fault
METHODS = ("value", "polar", "conjugate")


def test_all_are_here():
    kinds = {type(penalty).__name__ for penalty in ALL} & set(p.__all__)
    assert_complete(
        set(p.__all__) - {"Penalty"},
        kinds,
        "FREE or SIZED in tests/penalties/test_penalty_inputs.py",
    )


def calls(penalty):
    """Every public method of a vector, by name."""
    yield "prox", lambda x: penalty.prox(x, 0.7)
    for name in METHODS:
        yield name, getattr(penalty, name)


def outcome(call, *arguments):
    """What a call returns, or the sentence with which it refuses."""
    try:
        return call(*arguments)
    except (ValueError, TypeError) as error:
        message = str(error)
        assert re.match(r"[A-Z'].{15,}[.?)]$", message, re.DOTALL), f"{message!r} is no sentence"
        return message


def assert_same(found, expected):
    if isinstance(expected, str):
        assert found == expected
    else:
        np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------- what is not of the right shape


@looped("penalty", FREE[:2])
def test_parts_of_vectors_that_are_too_short(penalty):
    for x in (np.ones(2), np.ones((2, B))):
        for _, call in calls(penalty):
            message = outcome(call, x)
            assert "but there are" in message or "is not known" in message or "no polar" in message


def test_wrong_lengths_on_the_way():
    penalty = p.SparseGroupL2(1.0, 1.0, np.arange(10_000))
    loss = Squared(RNG.standard_normal((9, 3)), np.ones(9))
    for call in (
        lambda: critical_lam(loss, penalty),
        lambda: duality_gap(loss, penalty, np.zeros(3)),
        lambda: minimize(loss, penalty=penalty),
        lambda: minimize(loss, penalty=penalty, eta=1.0),
    ):
        with pytest.raises(
            ValueError, match=r"has 10000 group labels, but there are 3 penalized coordinates"
        ):
            call()


@looped("penalty", SIZED)
@looped("size", [1, 5, 10_000])
def test_wrong_lengths(penalty, size):
    for x in (np.ones(size), np.ones((size, D))):
        for _, call in calls(penalty):
            message = outcome(call, x)
            assert isinstance(message, str)
            assert (
                f"there are {size}" in message
                or "names" in message
                or "is not known" in message
                or "no polar" in message
            )
    with pytest.raises(ValueError, match=rf"there are {size}|names .*, but there are|^'size'"):
        penalty.check_size(size)


@together
@looped("shape", [(), (D, B, 2), (0,), (D, 0)])
def test_wrong_dimensions(penalty, shape):
    for name, call in calls(penalty):
        message = outcome(call, np.ones(shape))
        if name in ("prox", "value"):
            assert "must have shape (d,), or (d, B)" in message
            assert f"Got shape {shape}" in message
        else:
            assert isinstance(message, str)


# ---------------------------------------------------------------- what is the same numbers in another form


def forms(x):
    """The same numbers, in as many ways as there are to hold them."""
    yield "int", x.astype(int)
    yield "uint8", np.abs(x).astype(np.uint8)
    yield "bool", x.astype(int).astype(bool)
    yield "float16", x.astype(np.float16)
    yield "longdouble", x.astype(np.longdouble)
    yield "big-endian", x.astype(x.dtype.newbyteorder(">"))
    yield "objects", x.astype(object)
    yield "list", x.tolist()
    yield "strided", np.repeat(x, 2, axis=0)[::2]
    yield "negative strides", x[::-1].copy()[::-1]
    yield "Fortran", np.asfortranarray(x)
    yield "broadcast", np.broadcast_to(x[:1], x.shape)
    yield "unaligned", np.frombuffer(b"." + x.tobytes(), x.dtype, x.size, offset=1).reshape(x.shape)
    frozen = x.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen


@every
@looped(("shape", "dtype"), [((D,), np.float64), ((D, B), np.float32)])
def test_the_same_numbers_in_another_form(penalty, shape, dtype):
    x = RNG.integers(-3, 4, shape).astype(dtype)
    for form, odd in forms(x):
        clean = np.array(
            odd,
            dtype
            if getattr(odd, "dtype", None) in (dtype, np.dtype(dtype).newbyteorder(">"))
            else np.float64,
        )
        before = np.array(odd, copy=True)
        for _, call in calls(penalty):
            assert_same(outcome(call, odd), outcome(call, clean.copy()))
        np.testing.assert_array_equal(np.array(odd), before, err_msg=form)


@together
@looped(
    "bad",
    [
        np.array([1j, 0, 1, 2]),
        np.array(["1", "2", "3", "4"]),
        ["1", "2", "3", "4"],
        np.array(["1", 2.0, 3, 4], dtype=object),
        [[1.0], [1.0, 2.0], [1.0], [1.0]],
        np.array([b"1"] * D),
        np.arange(D).astype("M8[s]"),
        {1.0, 2.0, 3.0, 4.0},
        "1234",
        None,
        object(),
        [10**400] * D,
    ],
)
def test_what_is_no_array_of_numbers(penalty, bad):
    for name, call in calls(penalty):
        message = outcome(call, bad)
        assert isinstance(message, str)
        assert "must be" in message or name not in ("prox", "value")
    step = outcome(penalty.prox, np.ones(D), bad)
    assert isinstance(step, str)
    assert "'step' must be" in step


# ---------------------------------------------------------------- steps


@together
@looped(
    "step", [0.0, -1.0, np.nan, np.inf, [1.0, 1.0, 0.0, 1.0], [1.0, np.nan, 1.0, 1.0], -1, False]
)
def test_steps_are_positive_and_finite(penalty, step):
    for z in (np.ones((D, B)), np.ones(D, np.float32)):
        with pytest.raises(
            ValueError,
            match=r"^'step' must be positive and finite, in the float(32|64) of z\. Got .* instead\.$",
        ):
            penalty.prox(z, step)


@looped("step", [1e-60, 1e60])
def test_a_step_that_float32_does_not_have(step):
    with pytest.raises(
        ValueError,
        match=rf"'step' must be positive and finite, in the float32 of z\. Got {re.escape(str(step))} ",
    ):
        p.L1(1.0).prox(np.ones(D, np.float32), step)
    assert p.L1(1.0).prox(np.ones(D), step).shape == (D,)


@together
@looped("shape", [(0,), (D + 1,), (D, B), (1, 1, D)])
def test_steps_of_the_wrong_shape(penalty, shape):
    message = outcome(penalty.prox, np.ones(D), np.ones(shape))
    assert (
        f"'step' must have shape (), (d,), (1, B) or (d, B) for z of shape (4,). Got {shape}"
        in message
    )


@together
def test_steps_in_another_form(penalty):
    z, one = RNG.integers(-3, 4, (D, B)).astype(float), np.full((D, B), 2.0)
    expected = penalty.prox(z, one)
    others = [
        2,
        2.0,
        np.float32(2),
        np.int8(2),
        [2.0] * D,
        [[2.0] * B],
        one.astype(">f8"),
        one[::-1],
        one.astype(object),
    ]
    for step in (*others, np.broadcast_to(2.0, (D, B)), one.tolist()):
        before = np.array(step, copy=True)
        np.testing.assert_array_equal(penalty.prox(z, step), expected)
        np.testing.assert_array_equal(np.array(step), before)


# ---------------------------------------------------------------- out


@every
@looped("shape", [(D,), (D, B)])
def test_where_the_result_can_be_written(penalty, shape):
    """Any array of the right shape and dtype that can be written, wherever its memory is."""
    z, step = RNG.integers(-3, 4, shape).astype(float), np.full(shape, 0.7)
    expected = penalty.prox(z, step)
    room = np.zeros((2 * D, *shape[1:]))
    room[1 : D + 1] = z
    targets = {
        "its own": np.empty(shape),
        "strided": np.empty((2 * D, *shape[1:]))[::2],
        "negative strides": np.empty(shape)[::-1],
        "Fortran": np.empty(shape, order="F"),
        "over z": room[2 : D + 2],
        "under z": room[:D],
        "the same memory": room[1 : D + 1],
        "the steps": step,
    }
    for name, out in targets.items():
        room[1 : D + 1], step[:] = z, 0.7
        assert penalty.prox(room[1 : D + 1], step, out=out) is out
        np.testing.assert_array_equal(out, expected, err_msg=name)


@together
def test_where_it_cannot(penalty):
    z = np.ones(D)
    frozen = np.empty(D)
    frozen.flags.writeable = False
    for out in (
        np.empty(D - 1),
        np.empty(D + 1),
        np.empty((D, 1)),
        np.empty(D, np.float32),
        np.empty(D, int),
        np.empty(D, ">f8"),
    ):
        with pytest.raises(
            ValueError, match=r"^'out' must have the shape and dtype of z, \(4,\) and float64. Got"
        ):
            penalty.prox(z, 1.0, out=out)
    with pytest.raises(ValueError, match=r"^'out' is read-only"):
        penalty.prox(z, 1.0, out=frozen)
    for out in ([0.0] * D, (0.0,) * D, 3.0, "out"):
        with pytest.raises(TypeError, match=r"^'out' must be None or an array. Got"):
            penalty.prox(z, 1.0, out=out)
    with pytest.raises(ValueError, match=r"float64. Got \(4,\) and int64"):
        penalty.prox(np.ones(D, int), 1.0, out=np.ones(D, int))


# ---------------------------------------------------------------- constructors


class Thing:
    """No number at all."""

    def __repr__(self):
        return "thing"


THING = Thing()
NUMBERS = [
    "1",
    b"1",
    True,
    np.True_,
    1j,
    np.complex128(1),
    None,
    np.array("1"),
    [1.0],
    10**400,
    np.array([1.0]),
    THING,
]
NUMBERS += [[[1.0], [1.0, 2.0]], np.nan, np.inf]
ONE_NUMBER = {
    "GroupL2 lam": lambda v: p.GroupL2(v, LABELS),
    "SparseGroupL2 l1": lambda v: p.SparseGroupL2(v, 1.0, LABELS),
    "SparseGroupL2 l2": lambda v: p.SparseGroupL2(1.0, v, LABELS),
    "L2 lam": p.L2,
    "LInf lam": p.LInf,
    "HuberPenalty lam": lambda v: p.HuberPenalty(v, 1.0),
    "HuberPenalty delta": lambda v: p.HuberPenalty(1.0, v),
    "TotalVariation1D lam": p.TotalVariation1D,
    "FusedLasso l1": lambda v: p.FusedLasso(v, 1.0),
    "FusedLasso tv": lambda v: p.FusedLasso(1.0, v),
    "Nuclear lam": lambda v: p.Nuclear(v, (2, 2)),
    "Simplex radius": p.Simplex,
    "L1Ball radius": p.L1Ball,
    "L2Ball radius": p.L2Ball,
    "LInfBall radius": p.LInfBall,
    "Hyperplane beta": lambda v: p.Hyperplane([1.0], v),
    "HalfSpace beta": lambda v: p.HalfSpace([1.0], v),
    "BoxHyperplane beta": lambda v: p.BoxHyperplane(0.0, 1.0, [1.0], v),
    "Scaled factor": lambda v: p.Scaled(p.L1(1.0), v),
    "NumericalProx accuracy": lambda v: p.NumericalProx(p.L1(1.0), v),
}
LISTS = [
    "1",
    True,
    [True, False],
    [1j],
    ["1", "2"],
    np.array(["1"], object),
    None,
    [[1.0], [1.0, 2.0]],
    [[1.0]],
    [np.nan],
    THING,
]
MANY = {
    "L1 lam": p.L1,
    "Ridge lam": p.Ridge,
    "ElasticNet l1": lambda v: p.ElasticNet(v, 1.0),
    "ElasticNet l2": lambda v: p.ElasticNet(1.0, v),
    "SLOPE lams": p.SLOPE,
    "Box bounds": lambda v: p.Box(v, 1.0),
    "Box bounds ": lambda v: p.Box(0.0, v),
    "BoxHyperplane bounds": lambda v: p.BoxHyperplane(v, 1.0, [1.0, 1.0], 1.0),
    "GroupL2 groups": lambda v: p.GroupL2(1.0, v),
    "SparseGroupL2 groups": lambda v: p.SparseGroupL2(1.0, 1.0, v),
    "Translated shift": lambda v: p.Translated(p.L1(1.0), v),
    "Precomposed diagonal": lambda v: p.Precomposed(p.L1(1.0), v),
}


@looped("which", ONE_NUMBER)
@looped("value", NUMBERS)
def test_numbers_are_numbers(which, value):
    owner, name = which.split()
    with pytest.raises(ValueError, match=rf"^The '{name}' parameter of {owner} must be .* Got "):
        ONE_NUMBER[which](value)


@looped("which", [which for which in ONE_NUMBER if not which.endswith("beta")])
def test_numbers_that_must_not_be_negative(which):
    owner, name = which.split()
    with pytest.raises(
        ValueError,
        match=rf"^The '{name}' parameter of {owner} must be a (number >= 0|positive number)",
    ):
        ONE_NUMBER[which](-1.0)


@looped("which", MANY)
@looped("value", LISTS)
def test_lists_of_numbers_are_that(which, value):
    owner, name = which.split()[:2]
    with pytest.raises(
        ValueError, match=rf"^The ('{name}' parameter|bounds) of ({owner}|Box) must be "
    ):
        MANY[which](value)


COORDINATES = "coordinates of part 0 of Separable must be a slice or integers"
ONE, TWO = p.L1(1.0), p.L1([1.0, 2.0])


@looped(
    ("make", "sentence"),
    [
        *(
            (lambda kind=kind: kind([1.0, -1.0]), rf"parameter of {kind.__name__} must be")
            for kind in (p.L1, p.Ridge, p.SLOPE)
        ),
        (
            lambda: p.ElasticNet(1.0, -1.0),
            r"'l2' parameter of ElasticNet must be a number >= 0, or one per coordinate",
        ),
        (
            lambda: p.ElasticNet(1.0, [1.0, 2.0]).check_size(3),
            r"ElasticNet\(.*2 strengths, but there are 3 penalized coord",
        ),
        (
            lambda: minimize(Squared(np.eye(3), [1, 2, 3]), penalty=TWO, eta=1.0),
            r"2 strengths, but there are 3",
        ),
        (
            lambda: minimize(
                Squared(np.eye(3), [1, 2, 3], intercept=True), penalty=p.Box([0] * 4, 1), eta=1.0
            ),
            r"4 bounds, .* are 3",
        ),
        (
            lambda: p.Box(1.0, 0.0),
            r"Box is empty: lower must not exceed upper. It does at coordinate 0",
        ),
        (
            lambda: p.Box([0.0, 2.0], [1.0, 1.0]),
            r"Box is empty: lower must not exceed upper. It does at coordinate 1",
        ),
        (lambda: p.Box(np.inf, np.inf), r"Box is empty"),
        (lambda: p.Box(0.0, [1.0, np.nan]), r"bounds of Box must be numbers .* without NaN"),
        (
            lambda: p.Box([0.0, 0.0], [1.0, 1.0, 1.0]),
            r"bounds of Box must have the same length. Got 2 and 3",
        ),
        (lambda: p.GroupL2(1.0, [3, 7, 3], [1.0]), r"one number >= 0 per group, here 2"),
        (lambda: p.GroupL2(1.0, [3, 7], [1.0, -1.0]), r"one number >= 0 per group"),
        (
            lambda: p.GroupL2(1.0, [0.5, 1.0]),
            r"'groups' parameter of GroupL2 must be a vector of integers",
        ),
        (
            lambda: p.HuberPenalty(1.0, 0.0),
            r"'delta' parameter of HuberPenalty must be a positive number",
        ),
        (
            lambda: p.SLOPE([1.0, 2.0]),
            r"'lams' parameter of SLOPE must not increase.*entry 1 is larger",
        ),
        *(
            (lambda v=v: p.Nuclear(1.0, v), r"'shape' parameter of Nuclear")
            for v in ((2, 0), (2, 2, 2), 4, (2.0, 2))
        ),
        *(
            (lambda v=v: p.Monotone(v), r"'increasing' parameter of Monotone must be True or False")
            for v in (None, 1, "down")
        ),
        *(
            (lambda kind=kind, a=a: kind(a, 1.0), rf"The 'a' parameter of {kind.__name__} {what}")
            for kind in (p.Hyperplane, p.HalfSpace)
            for a, what in (
                ([0.0, 0.0], "is zero"),
                ([[1.0]], "must be one-dim"),
                ([1.0, np.nan], "contains"),
            )
        ),
        (
            lambda: p.BoxHyperplane(0.0, 1.0, [0.0], 0.0),
            r"The 'a' parameter of BoxHyperplane is zero",
        ),
        (
            lambda: p.BoxHyperplane(0.0, 1.0, [1.0, 1.0], 2.5),
            r"BoxHyperplane is empty: in the box, a'x is at most 2, .* be 2.5",
        ),
        (
            lambda: p.BoxHyperplane(0.0, 1.0, [1.0, -3.0], -4.0),
            r"BoxHyperplane is empty: in the box, a'x is at least -3, .* -4",
        ),
        (
            lambda: p.BoxHyperplane(0.0, np.inf, [1.0, 1.0], -1.0),
            r"BoxHyperplane is empty: in the box, a'x is at least 0",
        ),
        (lambda: p.BoxHyperplane([0.0, 0.0], 1.0, [1.0], 0.0), r"2 bounds, but there are 1"),
        (
            lambda: p.Affine([[1.0, 1.0], [2.0, 2.0]], [1.0, 3.0]),
            r"Affine is empty: the equations A x = b contradict each other",
        ),
        (lambda: p.Affine([[1.0, 1.0], [0.0, 0.0]], [1.0, 3.0]), r"Affine is empty: .* row 1"),
        (lambda: p.Affine([[0.0, 0.0]], [0.0]), r"The 'A' parameter of Affine is zero"),
        (lambda: p.Affine([1.0, 1.0], [0.0]), r"The 'A' parameter of Affine must be a matrix"),
        (lambda: p.Affine([[1.0, np.inf]], [0.0]), r"The 'A' parameter of Affine contains inf"),
        (
            lambda: p.Affine([[1.0, 1.0]], [0.0, 1.0]),
            r"The 'b' parameter of Affine must have shape \(1,\)",
        ),
        *(
            (lambda n=n: p.PSD(n), r"The 'n' parameter of PSD must be an integer >= 1")
            for n in (0, -1, 2.0, True)
        ),
        (
            lambda: p.Separable([(slice(0, 3), ONE), ([2], ONE)]).check_size(3),
            r"Part 1 of Separable names coordinates a second time",
        ),
        (
            lambda: p.Separable([([0], ONE), ([-3], ONE)]).check_size(3),
            r"Part 1 of Separable names coordinates a second time",
        ),
        (
            lambda: p.Separable([([5], ONE)]).check_size(5),
            r"Part 0 of Separable names 5, but there are 5 penalized coordinates",
        ),
        (
            lambda: p.Separable([([-6], ONE)]).prox(np.ones(5), 1.0),
            r"Part 0 of Separable names -6, but there are 5",
        ),
        (lambda: p.Separable([(slice(0, 3), TWO)]).check_size(5), r"2 strengths, but there are 3"),
        (lambda: p.Separable([([0.5], ONE)]), COORDINATES),
        (
            lambda: p.Separable([(1, 2, 3)]),
            r"'parts' parameter of Separable must be a list of pairs",
        ),
        (
            lambda: p.Scaled(p.Ridge(1.0), 0.0),
            r"The 'factor' parameter of Scaled is 0, but 0 times Ridge .* Use Zero\(\)",
        ),
        (
            lambda: p.Translated(ONE, [1.0, 2.0]).prox(np.ones(3), 1.0),
            r"The 'shift' of Translated has 2 entries, but there are 3",
        ),
        (
            lambda: p.Precomposed(ONE, [1.0, 0.0]),
            r"The 'diagonal' parameter of Precomposed has an entry whose square",
        ),
        (
            lambda: p.Precomposed(ONE, [1.0, 2.0]).check_size(3),
            r"The 'diagonal' of Precomposed has 2 entries, but there are 3",
        ),
        (
            lambda: p.Precomposed(p.PSD(2), [1.0, 2.0, 2.0, 1.0]),
            r"PSD needs one step .* Use NumericalProx\(penalty\) inside",
        ),
        *(
            (lambda n=n: p.NumericalProx(ONE, max_iter=n), r"The 'max_iter' parameter of Numeric")
            for n in (0, 1.5, True)
        ),
        (
            lambda: p.GroupL2(1.0, LABELS, ["1", "2"]),
            r"'weights' parameter of GroupL2 must hold one number >= 0 per group",
        ),
        (
            lambda: p.GroupL2(1e300, LABELS, [1e300, 1.0]),
            r"'weights' parameter of GroupL2 is too large",
        ),
        (lambda: p.Box([], 1.0), r"bounds of Box must be numbers"),
        (
            lambda: p.Nuclear(1.0, ((1,), (1, 2))),
            r"'shape' parameter of Nuclear must be two integers >= 1",
        ),
        (lambda: p.Nuclear(1.0, "22"), r"'shape' parameter of Nuclear must be two integers >= 1"),
        (lambda: p.Hyperplane("12", 1.0), r"'a' parameter of Hyperplane must be real numbers"),
        (
            lambda: p.Hyperplane([1e-320, 0.0], 1.0),
            r"'beta' parameter of Hyperplane, 1.0, is too large for its 'a'",
        ),
        (
            lambda: p.BoxHyperplane(0.0, 1.0, [1e-320], 1.0),
            r"'beta' parameter of BoxHyperplane, 1.0, is too large",
        ),
        (
            lambda: p.Affine([[1e-320]], [1.0]),
            r"'b' parameter of Affine, divided by .* contains inf",
        ),
        (lambda: p.Affine([["1"]], [1.0]), r"'A' parameter of Affine must be real numbers"),
        (
            lambda: p.Precomposed(ONE, 1e200),
            r"'diagonal' parameter of Precomposed has an entry whose square",
        ),
        (
            lambda: p.Precomposed(ONE, [1.0, 1e-200]),
            r"'diagonal' parameter of Precomposed has an entry whose square",
        ),
        (lambda: p.Separable([(slice("a"), ONE)]), COORDINATES),
        (lambda: p.Separable([(slice(0, 3, 0), ONE)]), COORDINATES),
        (lambda: p.Separable([([[0], [1, 2]], ONE)]), COORDINATES),
        (lambda: p.Separable([(slice(2**70, None), ONE)]), COORDINATES),
        (
            lambda: p.Unpenalised(ONE, free=10**13).prox([1.0], 1.0),
            r"names 10000000000000, but there are 1 penalized",
        ),
        (
            lambda: p.Separable([(slice(10**13), ONE)]).value([1.0]),
            r"names 10000000000000, but there are 1 penalized",
        ),
    ],
)
def test_other_definitions(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@looped("kind", [p.GroupL2, p.Box, Lasso])
def test_a_class_is_not_a_penalty(kind):
    sentence = rf"^'penalty' must be None .* Got the class {kind.__name__}: did you mean {kind.__name__}\(...\)\?$"
    with pytest.raises(TypeError, match=sentence):
        p.as_penalty(kind)


@looped(
    "call",
    [
        lambda: p.Separable([(0, 3.0)]),
        lambda: p.Scaled("l1", 2.0),
        lambda: p.Separable(3),
        lambda: p.as_penalty(3.0),
    ],
)
def test_what_is_not_a_penalty(call):
    with pytest.raises(
        TypeError, match=r"'parts' parameter|'penalty' must be None or have methods"
    ):
        call()
