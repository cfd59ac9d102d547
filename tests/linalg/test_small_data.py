"""Small data never compile: NumPy does the same as the compiled loops, and Numba is not even imported."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from adagrad_diff import L1, GroupL2, Ridge, minimize
from adagrad_diff.linalg import compiling
from adagrad_diff.losses import Multinomial
from loss_zoo import SCALAR, problem
from pairwise import pairwise

FITS = """
import sys
import numpy as np
from adagrad_diff import sklearn as models
from adagrad_diff import L1, LAD, Hinge, Logistic, Poisson, Quantile, minimize

rng = np.random.default_rng(0)
A = rng.standard_normal((1000, 20))
z = A[:, 0] - A[:, 1] + 0.5 * rng.standard_normal(1000)
counts = rng.poisson(np.exp(0.3 * z))


def check(name):
    assert "numba" not in sys.modules, name


minimize(LAD(A, z), penalty=L1(0.05), eta=0.1)
check("eta=0.1")
for loss in (LAD(A, z), Quantile(A, z, tau=0.9), Hinge(A, np.sign(z)), Logistic(A, np.sign(z)), Poisson(A, counts)):
    assert minimize(loss, penalty=L1(0.05)).success
    check(type(loss).__name__)
for name in models.__all__:
    kind = getattr(models, name)
    if isinstance(kind, type) and hasattr(kind, "fit") and name != "PathCV":
        model = kind()
        y = counts if name == "PoissonRegressor" else z > 0 if hasattr(model, "predict_proba") else z
        if "SVC" in name or "Classifier" in name:
            y = z > 0
        model.fit(A, y)
        check(name)
"""


def test_default_fits_of_small_data_do_not_import_numba():
    """At 1000 x 20, minimize with and without a step size and every estimator."""
    run = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]


@pairwise(
    kind=[*SCALAR, Multinomial],
    dtype=[np.float32, np.float64],
    layout=[np.ascontiguousarray, np.asfortranarray, sparse.csr_array],
    penalty=[L1(0.02), Ridge(0.1), None],
    width=[None, 3, 10],
    intercept=[False, True],
)
def test_compiled_loops_and_numpy_agree(
    monkeypatch, kind, dtype, layout, penalty, width, intercept
):
    plain, rng = problem(kind, samples=40, intercept=intercept)
    weight = rng.uniform(0.0, 1.0, 40) * (rng.random(40) < 0.9)
    loss = kind(
        layout(plain.A.array.astype(dtype)),
        plain.b,
        intercept=intercept,
        sample_weight=weight,
        l2=0.1,
    )
    x = 0.3 * rng.standard_normal((*loss.shape, *(() if width is None else (width,)))).astype(dtype)
    results = []
    for limit in (1 << 62, -1):
        monkeypatch.setattr(compiling, "largest_small", limit)
        other = kind(
            loss.A.whole.to_dense()
            if layout is not sparse.csr_array
            else layout(plain.A.array.astype(dtype)),
            plain.b,
            intercept=intercept,
            sample_weight=weight,
            l2=0.1,
        )
        run = minimize(other, x, penalty=penalty, eta=0.1, max_iter=3, history=0)
        results.append((*other.value_and_grad(x), run.x, run.fun))
    tolerance = 2e-5 if dtype is np.float32 else 1e-12
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("penalty", [L1(0.3), GroupL2(0.5, [0, 0, 1, 1, 2, 2])], ids=str)
def test_proximal_points_agree(monkeypatch, penalty):
    rng = np.random.default_rng(1)
    z, step = rng.standard_normal((6, 4)), rng.uniform(0.5, 2.0, (6, 4))
    points = []
    for limit in (1 << 62, -1):
        monkeypatch.setattr(compiling, "largest_small", limit)
        points.append(penalty.prox(z, step))
    np.testing.assert_allclose(points[0], points[1], rtol=1e-13, atol=1e-15)
