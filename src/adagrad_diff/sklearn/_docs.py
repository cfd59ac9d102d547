"""Documentation of parameters and attributes that several estimators share."""

from __future__ import annotations

from importlib import metadata
from inspect import cleandoc

SHARED = {
    "fit_intercept": """
        fit_intercept : bool
            Whether to fit an intercept. It is never penalized.
        """,
    "C": """
        C : float
            Inverse strength of the penalty, as in scikit-learn: alpha = 1 / (N C), where N is the
            sum of the sample weights.
        alpha : float, optional
            Strength of the penalty, >= 0. If given, C is not used.
        """,
    "class_weight": """
        class_weight : dict, "balanced" or None
            Weights of the classes. Sample weights are multiplied by them. "balanced" gives all
            classes the same total weight.
        """,
    "solver": """
        tol : float
            Stop when the objective is certified to be within tol (relative) of the optimum. If the
            optimum is nearly zero, tol is relative to a millionth of the scale of the problem.
            Also stop, without success, when the best objective has improved by less than tol
            (relative) over the last three quarters of at least 512 iterations.
        max_iter : int
            Maximum number of iterations.
        eta : "auto" or float
            Step size. "auto" needs no tuning. With a number, only the duality gap, or the size of a
            subgradient if no gap is known, stops the run before max_iter.
        warm_start : bool
            Whether `fit` starts from the solution of the previous fit.
        verbose : int
            1 prints a line every other second and one at the end.
        checkpoint : path, optional
            Directory in which a fit stores its progress. If it is killed, the same fit resumes and
            ends with the same result, bitwise. Each problem (data, loss, penalty, start) has its
            own file, so clones, folds and paths can share a directory. Files of solved problems
            stay: delete the directory when they are not needed any more.
        checkpoint_every : float
            Seconds between two writes of the checkpoint.
        """,
    "batch_size": """
        batch_size : int, optional
            Samples per minibatch, see `Minibatch`. An iteration is then an epoch of about one and a
            half passes over the data. By default eta="auto" decides whether to begin with
            minibatches, and `partial_fit` uses 32 samples.
        """,
    "regression": """
        coef_ : array (n_features,)
            Coefficients.
        intercept_ : float
            Intercept, zero without fit_intercept.
        """,
    "classification": """
        classes_ : array (n_classes,)
            Labels, sorted.
        coef_ : array (1, n_features) for two classes, else (n_classes, n_features)
            Coefficients.
        intercept_ : array (1,) or (n_classes,)
            Intercepts, zero without fit_intercept.
        """,
    "answer": """
        objective_ : float
            Mean loss + alpha x penalty at the solution.
        dual_gap_ : float
            `objective_` is certified to be within this of the optimum. It is infinite if nothing is
            certified.
        n_iter_ : int
            Number of iterations, including those of polishing.
        converged_ : bool
            Whether tol was reached. If not, there is a `sklearn.exceptions.ConvergenceWarning`.
        stop_reason_ : str
            Why the run ended. Converged: "certified" (the duality gap is within tol) or
            "subgradient" (no gap is known for this problem, but a subgradient is within tol). Not
            converged: "stalled" (the objective hardly improves any more), "max_iter",
            "no_minimizer" (nothing limits the coefficients, as with separable classes), "failed" (a
            number was not finite, and the best point before that is kept) or "partial_fit".
        n_features_in_ : int
            Number of features seen during `fit`.
        feature_names_in_ : array (n_features_in_,)
            Names of the features, if X has names that are all strings.
        """,
    "n_samples_seen_": """
        n_samples_seen_ : int
            Number of samples that all calls of `partial_fit` have seen.
        """,
    "several": """
        If there is one problem per class, `objective_`, `dual_gap_` and `n_iter_` are arrays with
        one entry per class, `converged_` says whether all of them converged, and `stop_reason_` is
        the worst.
        """,
}


def with_shared_text(doc: str | None) -> str | None:
    """Return a docstring with each line "<name>" replaced by the shared text of that name."""
    if doc is None:  # python -OO
        return None
    lines = cleandoc(doc).splitlines()
    return "\n".join(
        cleandoc(SHARED.get(line.strip("<>"), line)) if line.startswith("<") else line
        for line in lines
    )


def documentation_link() -> str:
    """Return where the page of an estimator is, for scikit-learn's HTML representation.

    The publisher of the package sets the address in `pyproject.toml`. Without one, return "".
    """
    try:
        urls = metadata.metadata("adagrad-diff").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    addresses: dict[str, str] = dict(url.split(", ", 1) for url in urls)
    if "Documentation" not in addresses:
        return ""
    return (
        addresses["Documentation"].rstrip("/")
        + "/reference/generated/{estimator_module}.{estimator_name}.html"
    )
