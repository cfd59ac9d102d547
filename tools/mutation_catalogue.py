"""Fifty deliberate bugs for tools/mutations.py, described by what they break.

The code to be changed is found by its text, wherever it is in the package, and must occur exactly once. When code is rewritten,
write the same bug for the new code: the description stays.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """One bug."""

    breaks: str  # what is wrong for a user
    tests: tuple[str, ...]  # folders or files in tests/ that should detect it
    old: str  # the code as it is
    new: str  # the code with the bug
    within: str = "*.py"  # which files are searched, if the text occurs in several


RULES, LOSSES, PENALTIES = ("rules",), ("losses",), ("penalties",)
SOLVE, SWEEPS, SKLEARN, TORCH, OPTAX, DASK = (
    ("solvers",),
    ("sweeps",),
    ("sklearn_",),
    ("torch_",),
    ("optax_",),
    ("dask_",),
)

MUTATIONS = (
    # ------------------------------------------------------------ rules
    Mutation(
        "AdaGradDiff forgets the first difference, g^1 - 0",
        RULES,
        'return {"previous": zeros, "total": self.block_sums(zeros)}',
        'return {"previous": g, "total": self.block_sums(zeros)}',
        "rules/adagrad_diff.py",
    ),
    Mutation(
        "Adam and its relatives ignore eps",
        RULES,
        "step = self.step_size(n) / (self.eps + self.spread(root))",
        "step = self.step_size(n) / (1e-300 + self.spread(root))",
        "rules/adam.py",
    ),
    Mutation(
        "Adam's bias corrections are one iteration late",
        RULES,
        "return average / (1 - decay**n)",
        "return average / (1 - decay ** (n + 1))",
        "rules/base.py",
    ),
    Mutation(
        "DoG uses the current distance from the start instead of the largest so far",
        RULES,
        'far = np.maximum(memory["far"], np.sqrt(self.block_sums((x - memory["origin"]) ** 2)))',
        'far = np.sqrt(self.block_sums((x - memory["origin"]) ** 2)) + np.where(n == 1, memory["far"], 0.0)',
        "rules/dog.py",
    ),
    Mutation(
        "KATE drops the term with delta when every coordinate is a block",
        RULES,
        'ratios = memory["ratios"] + self.delta * squares + squares',
        'ratios = memory["ratios"] + squares',
        "rules/kate.py",
    ),
    Mutation(
        "DelayedAdaGrad uses the current gradient, without a delay",
        RULES,
        'self.spread(memory["total"]) ** self.power',
        'self.spread(memory["total"] + self.block_sums(g**2)) ** self.power',
        "rules/delayed_adagrad.py",
    ),
    Mutation(
        "blocks='row' groups the columns of a matrix instead of its rows",
        ("rules", "solvers"),
        "return np.repeat(np.arange(shape[0]), shape[1])",
        "return np.tile(np.arange(shape[1]), shape[0])",
    ),
    # ------------------------------------------------------------ losses
    Mutation(
        "Quantile confuses tau and 1 - tau",
        LOSSES,
        "slope = theta * (t > 0.0) - (1.0 - theta) * (t < 0.0)",
        "slope = (1.0 - theta) * (t > 0.0) - theta * (t < 0.0)",
    ),
    Mutation(
        "Huber loses the factor 1/2 of its quadratic part",
        LOSSES,
        "return slope * (t - 0.5 * slope), slope",
        "return slope * (t - slope), slope",
    ),
    Mutation(
        "Poisson's conjugate has a flipped sign",
        ("losses", "duality"),
        "return -entr(v) - v",
        "return -entr(v) + v",
    ),
    Mutation(
        "The l2 term of a loss also penalizes the intercept",
        LOSSES,
        'np.einsum("i...,i...->...", w, w, dtype=np.float64)',
        'np.einsum("i...,i...->...", x, x, dtype=np.float64)',
    ),
    Mutation(
        "Sample weights are not normalized",
        LOSSES,
        "    weight /= weight.sum()\n",
        "",
    ),
    Mutation(
        "The gradient of Multinomial ignores the sample weight at the true class",
        LOSSES,
        "z[j, b[j], k] -= weight[j]",
        "z[j, b[j], k] -= 1.0",
    ),
    Mutation(
        "Poisson accepts negative targets",
        LOSSES,
        "_check.entries(targets >= 0, targets",
        "_check.entries(targets >= -np.inf, targets",
    ),
    # ------------------------------------------------------------ penalties
    Mutation(
        "The prox of L1 ignores the step",
        PENALTIES,
        "z = soft(xp, z, step * l1)",
        "z = soft(xp, z, 0.0 * step + l1)",
    ),
    Mutation(
        "ElasticNet's conjugate is twice too large",
        PENALTIES,
        "excess * (excess / (2 * l2))",
        "excess * (excess / l2)",
    ),
    Mutation(
        "The polar of GroupL2 adds up groups instead of taking the largest",
        PENALTIES,
        "self._strength).max(axis=1)",
        "self._strength).sum(axis=1)",
    ),
    Mutation(
        "The prox of Translated shifts the wrong way back",
        PENALTIES,
        "np.where(x == moved, z, x + shift)",
        "np.where(x == moved, z, x - shift)",
    ),
    Mutation(
        "Precomposed does not scale the step of the inner prox",
        PENALTIES,
        "x = inner_prox(self.penalty, scaled, step * square)",
        "x = inner_prox(self.penalty, scaled, step + 0.0 * square)",
    ),
    Mutation(
        "Separable's conjugate ignores coordinates without a penalty",
        PENALTIES,
        "(penalty.conjugate(y[where]) for where, penalty in pairs),\n            indicator((y[rest] == 0).all(axis=0)),",
        "(penalty.conjugate(y[where]) for where, penalty in pairs),\n            np.zeros(y.shape[1:]),",
    ),
    Mutation(
        "Simplex accepts negative entries",
        PENALTIES,
        "\n            & (x.min(axis=0) >= -slack)",
        "\n",
    ),
    # ------------------------------------------------------------ certificates
    Mutation(
        "The dual point of a norm penalty is not scaled into the dual set, so bounds are too high",
        ("duality",),
        "return (1.0 if polar <= 1 else (1.0 - 4 * EPS) / polar), 0.0",
        "return (1.0 if polar <= 2 else (1.0 - 4 * EPS) / polar), 0.0",
    ),
    Mutation(
        "The dual function ignores sample weights",
        ("duality",),
        "values = (weight * conjugate)[weight > 0]",
        "values = (conjugate / self.loss.A.shape[0])[weight > 0]",
    ),
    Mutation(
        "at_fraction multiplies the strength of the given penalty once more",
        ("duality",),
        "fraction * critical_lam(loss, penalty) / penalty.strength_unit",
        "fraction * critical_lam(loss, penalty)",
    ),
    Mutation(
        "critical_lam takes no notice of the intercept",
        ("duality",),
        "x[-intercepts:] = offset",
        "x[-intercepts:] = 0.0 * offset",
    ),
    # ------------------------------------------------------------ polishing
    Mutation(
        "Newton's method steps backwards when the full step is too long",
        ("polishing",),
        "x[index] = new if t == 1.0 else old + t * d",
        "x[index] = new if t == 1.0 else old - t * d",
    ),
    Mutation(
        "The corrector of the interior point method has flipped signs",
        ("polishing",),
        "aim = mu - dS * dZ",
        "aim = mu + dS * dZ",
    ),
    Mutation(
        "The interior point method takes too many samples for those at their nonsmooth points",
        ("polishing",),
        "| self.missing).all(axis=0)",
        "| self.missing).any(axis=0)",
    ),
    # ------------------------------------------------------------ solver and checkpoints
    Mutation(
        "A resumed run starts its iteration budget again",
        SOLVE,
        'loop.left = max(0, loop.left - (loop.n - header["begun"]))',
        "loop.left = max(0, loop.left)",
        "solvers/checkpoint.py",
    ),
    Mutation(
        "A resumed run loses its history",
        SOLVE,
        "loop.rows, codes, before = self.rows, self.codes, self.before",
        "codes, before = self.codes, self.before",
        "solvers/checkpoint.py",
    ),
    Mutation(
        "The checksum of a checkpoint is not verified",
        SOLVE,
        "if sha256 != checksum(text, arrays):",
        "if not sha256:",
        "_files.py",
    ),
    Mutation(
        "A checkpoint that cannot be written is ignored",
        SOLVE,
        "            raise failure from error",
        "            del failure",
        "solvers/checkpoint.py",
    ),
    Mutation(
        "The average iterate divides by one iteration too many",
        SOLVE,
        "self.x_sum / np.maximum(weights, 1)",
        "self.x_sum / np.maximum(weights + 1, 1)",
        "solvers/state.py",
    ),
    Mutation(
        "A run that its callback has stopped reports that its budget is used up",
        SOLVE,
        "return Status.CALLBACK",
        "return Status.MAX_ITER",
        "solvers/loop.py",
    ),
    Mutation(
        "A sweep continues the checkpoint of another sweep",
        SWEEPS,
        'if header["sweep"] != self.fingerprint:',
        "if False:",
    ),
    # ------------------------------------------------------------ scikit-learn
    Mutation(
        "predict_proba swaps the two classes",
        SKLEARN,
        "return np.column_stack([expit(-scores), expit(scores)])",
        "return np.column_stack([expit(scores), expit(-scores)])",
    ),
    Mutation(
        "Noncrossing quantiles are sorted without regard to the order of the levels",
        SKLEARN,
        'z[:, np.argsort(self._levels, kind="stable")] = np.sort(z, axis=1)',
        "z[:] = np.sort(z, axis=1)",
    ),
    Mutation(
        "partial_fit accepts labels that are not among the classes",
        SKLEARN,
        "if (unknown := np.setdiff1d(y, classes)).size:",
        "if not np.isin(y, classes).any():",
    ),
    # ------------------------------------------------------------ PyTorch
    Mutation(
        "Decoupled weight decay ignores the learning rate in lists of tensors",
        TORCH,
        "torch._foreach_mul_(points, [1 - lr * decay for lr, *_ in numbers])",
        "torch._foreach_mul_(points, [1 - decay for lr, *_ in numbers])",
    ),
    Mutation(
        "lr_decay of the PyTorch optimizer starts one step early",
        TORCH,
        "lr / (1 + (n - 1) * decay)",
        "lr / (1 + n * decay)",
    ),
    Mutation(
        "The buffers of the PyTorch optimizers ignore accumulator_dtype",
        TORCH,
        'group["accumulator_dtype"] or (torch.float32 if x.dtype in HALF else x.dtype)',
        "torch.float32 if x.dtype in HALF else x.dtype",
    ),
    Mutation(
        "Sparse gradients do not accumulate in the PyTorch optimizer",
        TORCH,
        "total[tuple(change.indices())] += change.values().square()",
        "total[tuple(change.indices())] = change.values().square()",
    ),
    # ------------------------------------------------------------ optax
    Mutation(
        "The optax transformation adds eps inside the root",
        OPTAX,
        "jnp.asarray(bounded(root(v + eps_root), d, blocks, max_move) + eps, v.dtype)",
        "jnp.asarray(bounded(root(v + eps_root + eps), d, blocks, max_move), v.dtype)",
    ),
    Mutation(
        "Nesterov momentum of the optax transformation gives the gradient too much weight",
        OPTAX,
        "b1 * m + (1 - b1) * g, g.dtype",
        "b1 * m + g, g.dtype",
    ),
    Mutation(
        "The optax prox also moves entries that have not had a gradient",
        OPTAX,
        "step = jnp.where(seen, step, 0.0).astype(z.dtype)",
        "step = jnp.asarray(step, z.dtype)",
    ),
    # ------------------------------------------------------------ Dask
    Mutation(
        "Every Dask block uses the sample weights of the first block",
        DASK,
        "weight=samples.weight[lo:hi]",
        "weight=samples.weight[: hi - lo]",
    ),
    # ------------------------------------------------------------ command line, data sets, studies
    Mutation(
        "adagrad-diff fit reports intercepts of standardized columns",
        ("test_cli_fit.py",),
        '"intercept": float(c - raw @ shift)',
        '"intercept": float(c)',
    ),
    Mutation(
        "Decimal commas in CSV files are not read as such",
        ("test_cli_tables.py", "test_cli_fit.py"),
        'decimal="," if comma else "."',
        'decimal="."',
    ),
    Mutation(
        "A damaged download is used in spite of its wrong SHA-256",
        ("datasets_",),
        "if found != entry.sha256:\n        raise DataError(",
        "if not found:\n        raise DataError(",
    ),
    Mutation(
        "Decades of good step sizes are not interpolated where a curve crosses the threshold",
        ("experiments",),
        "[0.5, 1.0], inside / (inside - outside)",
        "[0.5, 1.0], 0.5",
    ),
    Mutation(
        "UniXGrad forgets the first gradient of a step before the second one",
        ("rules",),
        'new = {"previous": g, "total": memory["total"] + added}',
        'new = {"previous": memory["previous"], "total": memory["total"] + added}',
    ),
    Mutation(
        "AdaPEG counts the first gradient, which is only a prediction",
        ("rules",),
        '"sum": -g, "total": self.block_sums(zeros)',
        '"sum": zeros, "total": self.block_sums(zeros)',
    ),
    Mutation(
        "The grid of learning rates is extended at its lower end only",
        ("experiments",),
        "if len(grid) - 1 in best else []",
        "if len(grid) in best else []",
    ),
    Mutation(
        "A run that diverged does not count as the initial loss",
        ("experiments",),
        "failed_gap=initial,",
        "failed_gap=np.inf,",
    ),
    Mutation(
        "A comparison that resumes repeats completed training runs",
        ("experiments",),
        "[key for key in keys if key not in runs]",
        "[key for key in keys if key]",
    ),
    Mutation(
        "The report page shows all rules at first",
        ("experiments",),
        "{% if rule.name in shown %} checked{% endif %}",
        " checked",
        "page.html",
    ),
)
