"""Give invalid sparse matrices to every entry point: python invalid_sparse.py losses|sklearn|dask.

Invalid indices may end the interpreter, so the tests run this file in a process of its own. It prints one line per call: the
entry point, the damage and the outcome, separated by tabs. A line is started before its call is made.
"""

import sys
import warnings

import numpy as np
from scipy import sparse

from adagrad_diff import LAD, Minibatch, Multinomial, Quadratic, Squared, minimize
from adagrad_diff.linalg import Source

SAMPLES, FEATURES = 40, 5
A = np.random.default_rng(0).standard_normal((SAMPLES, FEATURES))
b = np.sign(A[:, 0])
FAR = 10**8  # an index this large is outside of the memory of the process


def csr(part, place, value, kind="csr"):
    matrix = sparse.csr_array(A).asformat(kind)
    getattr(matrix, part)[place] = value
    return matrix


def shortened(part, kind="csr"):
    matrix = sparse.csr_array(A).asformat(kind)
    setattr(matrix, part, getattr(matrix, part)[:-3])
    return matrix


def coo():
    matrix = sparse.coo_array(A)
    matrix.coords[0][3] = FAR
    return matrix


def lil():
    matrix = sparse.lil_array(A)
    matrix.rows[2][1] = FAR
    return matrix


def dia():
    matrix = sparse.dia_array(A)
    matrix.offsets = np.append(matrix.offsets, [0, 0, 0])
    return matrix


DAMAGE = {  # what is wrong: (the matrix, the format in which it is found)
    "pointers end too late": (lambda: csr("indptr", -1, FAR), "CSR"),
    "pointers go back": (lambda: csr("indptr", 7, FAR), "CSR"),
    "too few pointers": (lambda: shortened("indptr"), "CSR"),
    "index too large": (lambda: csr("indices", 3, FAR), "CSR"),
    "negative index": (lambda: csr("indices", 3, -FAR), "CSR"),
    "too few indices": (lambda: shortened("indices"), "CSR"),
    "too many indices": (lambda: shortened("data"), "CSR"),
    "CSC, index too large": (lambda: csr("indices", 3, FAR, "csc"), "CSC"),
    "CSC, negative index": (lambda: csr("indices", 3, -FAR, "csc"), "CSC"),
    "CSC, pointers end too late": (lambda: csr("indptr", -1, FAR, "csc"), "CSC"),
    "BSR, index too large": (lambda: csr("indices", 0, FAR, "bsr"), "BSR"),
    "COO, index too large": (coo, "COO"),
    "LIL, index too large": (lil, "CSR"),
    "DIA, too many offsets": (dia, "DIA"),
}


class Blocks(Source):
    """A source of one block. With `late`, only blocks after the first pass are invalid."""

    shape, cuts = (SAMPLES, FEATURES), (0, SAMPLES)

    def __init__(self, matrix, late=False):
        self.matrix, self.passes = matrix, -1 if late else 0

    def block(self, k):
        self.passes += 1
        return sparse.csr_array(A) if self.passes == 0 else self.matrix


def loss_entries():
    return {
        "Squared": lambda X: Squared(X, b),
        "Multinomial": lambda X: Multinomial(X, b > 0),
        "Quadratic": lambda X: Quadratic(X, b[:FEATURES]),
        "Minibatch": lambda X: Minibatch(LAD(X, b), 4),
        "Source": lambda X: Squared(Blocks(X), b),
        "Source, later": lambda X: minimize(Squared(Blocks(X, late=True), b), eta=0.1, max_iter=2),
    }


def sklearn_entries():
    from adagrad_diff import sklearn as door

    lad, svc, kernel = (
        door.LADRegressor().fit(A, b),
        door.LinearSVC().fit(A, b),
        door.KernelSVC().fit(A, b),
    )
    logistic, poisson = door.LogisticRegression().fit(A, b), door.PoissonRegressor().fit(A, b > 0)
    quantile, path = (
        door.QuantileRegressor().fit(A, b),
        door.PathCV(door.Lasso(), n_alphas=2, cv=2).fit(A, b),
    )
    stream = door.LADRegressor(batch_size=4).partial_fit(A, b)
    return {
        "LADRegressor.fit": lambda X: door.LADRegressor().fit(X, b),
        "LADRegressor.predict": lad.predict,
        "LADRegressor.score": lambda X: lad.score(X, b),
        "partial_fit": lambda X: stream.partial_fit(X, b),
        "Lasso.path": lambda X: door.Lasso().path(X, b),
        "LinearSVC.fit": lambda X: door.LinearSVC().fit(X, b),
        "LinearSVC.decision_function": svc.decision_function,
        "LogisticRegression.predict_proba": logistic.predict_proba,
        "PoissonRegressor.score": lambda X: poisson.score(X, b > 0),
        "QuantileRegressor.predict": quantile.predict,
        "PathCV.fit": lambda X: door.PathCV(door.Lasso(), n_alphas=2, cv=2).fit(X, b),
        "PathCV.predict": path.predict,
        "KernelSVC.fit": lambda X: door.KernelSVC().fit(X, b),
        "KernelSVC.predict": kernel.predict,
        "fit of a Source": lambda X: door.LADRegressor().fit(Blocks(X), b),
    }


def dask_entries():
    import dask
    import dask.array as da

    from adagrad_diff import dask as door

    def rows(X, copies=1):
        delayed = dask.delayed(lambda: X, pure=False)
        meta = sparse.csr_array((0, 0))
        chunks = [da.from_delayed(delayed(), A.shape, A.dtype, meta=meta) for _ in range(copies)]
        return da.concatenate(chunks, axis=1) if copies > 1 else chunks[0]

    lad = door.LADRegressor().fit(da.from_array(A, chunks=(20, FEATURES)), b)
    return {
        "source": lambda X: Squared(door.source(rows(X)), b),
        "source, chunks side by side": lambda X: Squared(door.source(rows(X, 2)), b),
        "LADRegressor.fit": lambda X: door.LADRegressor().fit(rows(X), b),
        "LADRegressor.predict": lambda X: lad.predict(rows(X)).compute(),
    }


def main(kind):
    warnings.simplefilter("ignore")
    if kind == "dask":
        import dask

        dask.config.set(scheduler="synchronous")
    for entry, call in {"losses": loss_entries, "sklearn": sklearn_entries, "dask": dask_entries}[
        kind
    ]().items():
        for name, (make, _) in DAMAGE.items():
            print(entry, name, sep="\t", end="\t", flush=True)
            try:
                call(make())
            except ValueError as error:
                print(str(error).replace("\n", " "), flush=True)
            except Exception as error:
                print(type(error).__name__, str(error).replace("\n", " "), flush=True)
            else:
                print("no error", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
