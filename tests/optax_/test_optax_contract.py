"""The tests that optax asks of its contributed optimizers, and of all of them when arrays are sharded, run on ours.

They ship in optax's wheel: their lists of optimizers are replaced, nothing else.
"""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jax")
optax = pytest.importorskip("optax")

from adagrad_diff import optax as door  # noqa: E402

pytestmark = pytest.mark.peer

SUITE = Path(optax.contrib.__path__[0], "_common_test.py")
SHARDING = Path(optax.__path__[0], "_src", "sharding_test.py")

# Learning rates with which all four of the suite's problems, Rosenbrock's function among them, are solved in its 30,000 steps.
OURS = [
    {"opt_name": "adagraddiff", "opt_kwargs": {"learning_rate": 1.0}},
    {
        "opt_name": "adagraddiff",
        "opt_kwargs": {"learning_rate": 1.0, "blocks": "tensor", "accumulator_dtype": "float32", "penalty": door.L1(1e-4)},
    },
    {"opt_name": "adamdiff", "opt_kwargs": {"learning_rate": 1e-2}},
]


def suite():
    """The suite's test class, made anew with our optimizers in its lists."""
    if not SUITE.is_file():
        return None
    before, line, after = SUITE.read_text().partition("class ContribTest(")
    assert line, "the suite has another shape"
    names = {"__name__": "optax_contract"}
    exec(compile(before, SUITE.name, "exec"), names)
    ours = tuple({**entry, "wrapper_name": None, "wrapper_kwargs": None} for entry in OURS)
    assert {"_MAIN_OPTIMIZERS_UNDER_TEST", "_ALL_OPTIMIZERS_UNDER_TEST", "contrib"} <= names.keys()
    names |= {"_MAIN_OPTIMIZERS_UNDER_TEST": ours, "_ALL_OPTIMIZERS_UNDER_TEST": ours}
    names["contrib"] = SimpleNamespace(adagraddiff=door.adagraddiff, adamdiff=door.adamdiff)
    exec(compile(line + after, SUITE.name, "exec"), names)
    return names["ContribTest"]


TestContract = suite()  # what every optimizer of `optax.contrib` has to do


def test_the_contract_is_there():
    """So that the tests above cannot pass by not being there."""
    if not SUITE.is_file():
        pytest.skip("this optax comes without its tests")
    names = [name for name in dir(TestContract) if name.startswith("test_")]
    assert len(names) >= 10 * len(OURS)


OPTIMIZERS = """
    "adagraddiff": adagraddiff(1.0),
    "schedule": adagraddiff(optax.constant_schedule(1.0), penalty=L1(0.1)),
    "row": adagraddiff(1.0, blocks="row", penalty=GroupL2(0.1)),
    "tensor": adamdiff(1.0, blocks="tensor", penalty=GroupL2(0.1, "tensor")),
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
    text = text[:start] + OPTIMIZERS + text[end:]
    text = text.replace("(8,), ('x',)", "(2,), ('x',)").replace("device_count=8", "device_count=2")
    text = text.replace("class ShardingTest", "from adagrad_diff.optax import *\nimport numpy as np\nclass ShardingTest", 1)
    text = text.replace(
        "OPTIMIZERS = {", "from adagrad_diff.optax import L1, GroupL2, adagraddiff, adamdiff\nOPTIMIZERS = {", 1
    )
    text = text.replace("if __name__ == '__main__':", STEPS + "\nif __name__ == '__main__':")
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert "steps agree" in done.stdout
    assert "OK" in done.stderr
