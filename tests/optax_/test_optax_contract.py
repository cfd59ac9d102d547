"""The tests that optax has for its own, contributed and sharded optimizers, run on ours.

They ship in optax's wheel. Their lists of optimizers are replaced, and what does not apply is left
out, with a reason.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jax")
optax = pytest.importorskip("optax")

from adagrad_diff import optax as package  # noqa: E402

pytestmark = [pytest.mark.peer, pytest.mark.slow]

CONTRIBUTED = Path(optax.contrib.__path__[0], "_common_test.py")
ALIASES = Path(optax.__path__[0], "_src", "alias_test.py")
SHARDING = Path(optax.__path__[0], "_src", "sharding_test.py")
OURS = SimpleNamespace(
    adagraddiff=package.adagraddiff, adamdiff=package.adamdiff, adamwdiff=package.adamwdiff
)

# These learning rates solve the problems of all suites, such as Rosenbrock's function, in their
# 10,000 steps.
PENALISED = {
    "opt_name": "adagraddiff",
    "opt_kwargs": {
        "learning_rate": 1.0,
        "blocks": "tensor",
        "accumulator_dtype": "float32",
        "penalty": package.L1(1e-4),
    },
}
ADAM = {"opt_name": "adamdiff", "opt_kwargs": {"learning_rate": 1e-2}}
ADAMW = {"opt_name": "adamwdiff", "opt_kwargs": {"learning_rate": 1e-2}}
# Each suite takes about ten seconds per optimizer. The suites are similar, so neither has all.
IN_CONTRIBUTED = (ADAM,)
IN_ALIASES = (PENALISED, ADAMW)

# What does not apply.
LEFT_OUT = {
    "test_explicit_dtype": "half precision has states in single precision, complex entries real",
    "test_microbatch_with_explicit_sharding": "it is about optax.microbatching only",
}


def suite(path, name, replaced):
    """Return a test class of optax, executed with other names in its module."""
    if not path.is_file():
        return None
    before, line, after = path.read_text().partition(f"class {name}(")
    assert line, "the suite has another shape"
    names = {"__name__": f"optax_{name}"}
    exec(compile(before, path.name, "exec"), names)
    assert replaced.keys() <= names.keys(), "the suite has other lists"
    names |= replaced
    exec(compile(line + after.partition("\nclass ")[0], path.name, "exec"), names)
    for test in [test for test in vars(names[name]) if test.startswith(tuple(LEFT_OUT))]:
        delattr(names[name], test)
    return names[name]


UNWRAPPED = tuple(
    {**entry, "wrapper_name": None, "wrapper_kwargs": None} for entry in IN_CONTRIBUTED
)
CONTRIBUTED_LISTS = {
    "_MAIN_OPTIMIZERS_UNDER_TEST": UNWRAPPED,
    "_ALL_OPTIMIZERS_UNDER_TEST": UNWRAPPED,
    "contrib": OURS,
}

TestContributed = suite(
    CONTRIBUTED, "ContribTest", CONTRIBUTED_LISTS
)  # what every optimizer of `optax.contrib` has to do
TestAlias = suite(
    ALIASES, "AliasTest", {"_OPTIMIZERS_UNDER_TEST": IN_ALIASES, "alias": OURS}
)  # and of optax itself


def test_the_suites_are_there():
    """So that the tests above cannot pass by not being there."""
    if not (CONTRIBUTED.is_file() and ALIASES.is_file()):
        pytest.skip("this optax comes without its tests")
    for contract, ours in ((TestContributed, IN_CONTRIBUTED), (TestAlias, IN_ALIASES)):
        names = [name for name in dir(contract) if name.startswith("test_")]
        assert len(names) >= 10 * len(ours)
    texts = CONTRIBUTED.read_text() + ALIASES.read_text() + SHARDING.read_text()
    assert all(f"def {name}(" in texts for name in LEFT_OUT)  # what is left out is there


IMPORTS = """
import numpy as np
from adagrad_diff.optax import *
ADAM = DiagonalTransformation(
    *optax.scale_by_adam(), lambda state: jax.tree.map(lambda nu: jnp.sqrt(nu) + 1e-8, state.nu)
)
"""

SHARDED = """
    "adagraddiff": adagraddiff(1.0),
    "schedule": adagraddiff(optax.constant_schedule(1.0), blocks="row", penalty=GroupL2(0.1)),
    "tensor": adamdiff(1.0, blocks="tensor", penalty=GroupL2(0.1, "tensor")),
    "decay": adamwdiff(1.0, penalty=L1(0.1), max_move=2.0),
    "adam": proximal(ADAM, 1.0, GroupL2(0.1)),
"""

STEPS = """
# Spread over two devices, everything is what it is on one.
mesh = jax.make_mesh((2,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))
for name, optimizer in OPTIMIZERS.items():
    results = []
    for spec in (jax.P(None, None), jax.P("x", None), jax.P(None, "x")):
        with jax.set_mesh(mesh):
            x = jax.device_put(jnp.arange(24.0).reshape(4, 6) / 10, jax.NamedSharding(mesh, spec))
            state = optimizer.init(x)
            for n in range(3):
                updates, state = jax.jit(optimizer.update)(jnp.sin((n + 1) * x), state, x)
                x = optax.apply_updates(x, updates)
            assert x.sharding.spec == spec, (name, x.sharding)
            results.append(np.asarray(x))
    for result in results:
        np.testing.assert_allclose(result, results[0], rtol=1e-5, err_msg=name)
print("steps agree")
"""


def test_explicit_sharding_over_two_devices():
    if not SHARDING.is_file():
        pytest.skip("this optax comes without its tests")
    text = SHARDING.read_text()
    start, end = text.index("OPTIMIZERS = {") + len("OPTIMIZERS = {"), text.index("\n}\n")
    text = text[:start] + SHARDED + text[end:]
    text = text.replace("(8,), ('x',)", "(2,), ('x',)").replace("device_count=8", "device_count=2")
    guards = text.count("if jax.__version__ < '0.")
    assert guards >= 2
    text = text.replace(
        "if jax.__version__ < '0.", "if False and '0."
    )  # versions compared as texts: 0.10 is before 0.7
    text = text.replace("OPTIMIZERS = {", IMPORTS + "OPTIMIZERS = {", 1)
    left_out = f"[delattr(ShardingTest, n) for n in list(vars(ShardingTest)) if n.startswith({tuple(LEFT_OUT)})]\n"
    text = text.replace(
        "if __name__ == '__main__':", left_out + STEPS + "\nif __name__ == '__main__':"
    )
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "steps agree" in done.stdout
    assert "OK" in done.stderr
    assert "skipped" not in done.stderr
