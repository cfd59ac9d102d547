"""Two processes on CPU give the result of one: DDP, and FSDP2 with sharded parameters."""

import multiprocessing
import runpy
from itertools import pairwise
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.peer, pytest.mark.slow]

import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402

from adagrad_diff.torch import L1, AdaGradDiff, AdamDiff, Box, GroupL2  # noqa: E402

if not (dist.is_available() and dist.is_gloo_available()):
    pytest.skip("torch without gloo", allow_module_level=True)

EXAMPLE = Path(__file__).parents[2] / "examples" / "torch_distributed.py"
PROCESSES, STEPS, TOLERANCE = 2, 6, 1e-12
METHODS = (AdaGradDiff, AdamDiff)
BLOCKS = ("element", "row", "tensor")
GROUPED = (
    L1(0.02),
    GroupL2(0.05),
    GroupL2(0.05, over="tensor"),
)  # whose steps have the shape of the blocks
SHARDED = {"element": (None, *GROUPED), "row": (Box(-0.2, 0.2), *GROUPED), "tensor": GROUPED}


# ------------------------------------------------------------ what every process does


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    sizes = (
        5,
        7,
        1,
    )  # odd: the shards differ in size, and one process has nothing of the last layer
    layers = [torch.nn.Linear(n, m, dtype=torch.float64) for n, m in pairwise(sizes)]
    return torch.nn.Sequential(layers[0], torch.nn.Tanh(), layers[1])


def data() -> torch.Tensor:
    return torch.randn(8, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def share(X: torch.Tensor) -> torch.Tensor:
    """This process' samples."""
    return X.chunk(PROCESSES)[dist.get_rank()]


def train(model, optimizer, X, steps=STEPS):
    for _ in range(steps):
        optimizer.zero_grad()
        model(X).square().sum(
            1
        ).mean().backward()  # both ways of training average the gradients over the processes
        optimizer.step()


def whole(x: torch.Tensor) -> torch.Tensor:
    return x.full_tensor() if hasattr(x, "full_tensor") else x


def same(theirs, ours) -> None:
    for p, q in zip(theirs, ours, strict=True):
        torch.testing.assert_close(
            whole(p.detach()), whole(q.detach()), rtol=TOLERANCE, atol=TOLERANCE
        )


def alone(method, **options):
    model = network()
    optimizer = method(model.parameters(), lr=0.1, **options)
    train(model, optimizer, data())
    return model, optimizer


def sharded(method, **options):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = network()
    fully_shard(model, mesh=init_device_mesh("cpu", (PROCESSES,)))
    return model, method(model.parameters(), lr=0.1, **options)


def ddp() -> None:
    for method in METHODS:
        for options in (
            {},
            {"penalty": L1(0.01)},
            {"penalty": L1(0.01), "blocks": "row"},
            {"foreach": True},
        ):
            model = torch.nn.parallel.DistributedDataParallel(
                network(), gradient_as_bucket_view=True
            )
            optimizer = method(model.parameters(), lr=0.1, **options)
            train(model, optimizer, share(data()))
            reference, single = alone(method, **options)
            same(model.parameters(), reference.parameters())
            for p, q in zip(model.parameters(), reference.parameters(), strict=True):
                same(optimizer.state[p].values(), single.state[q].values())


def fsdp2() -> None:
    for method in METHODS:
        for blocks in BLOCKS:
            for penalty in SHARDED[blocks] if method is AdaGradDiff else (L1(0.02),):
                reference, _ = alone(method, blocks=blocks, penalty=penalty)
                model, optimizer = sharded(method, blocks=blocks, penalty=penalty)
                train(model, optimizer, share(data()))
                same(model.parameters(), reference.parameters())
                if isinstance(penalty, L1):  # exact zeros at the same places
                    assert sum(int((whole(p) == 0).sum()) for p in model.parameters()) > 0
        reference, _ = alone(method)
        model, optimizer = sharded(method, foreach=True)
        train(model, optimizer, share(data()))
        same(model.parameters(), reference.parameters())


def fsdp2_state() -> None:
    from torch.distributed.checkpoint.state_dict import (
        StateDictOptions,
        get_optimizer_state_dict,
        set_optimizer_state_dict,
    )

    for method in METHODS:
        for blocks in BLOCKS if method is AdaGradDiff else ("row",):
            options = {"blocks": blocks, "penalty": L1(0.01)}
            reference, single = alone(method, **options)
            first, optimizer = sharded(method, **options)
            train(first, optimizer, share(data()), STEPS // 2)
            saved = {"model": first.state_dict(), "optimizer": optimizer.state_dict()}
            state = optimizer.state[next(first.parameters())]
            mine = state["prev"].to_local().shape
            assert mine[0] == share(torch.zeros(7)).numel()  # every process keeps only its part
            if blocks == "row":
                assert state["total"].to_local().shape == (mine[0], 1)

            # Through the optimizer's own state_dict, and through torch's, which is gathered.
            second, resumed = sharded(method, **options)
            second.load_state_dict(saved["model"])
            resumed.load_state_dict(saved["optimizer"])
            third, restored = sharded(method, **options)
            third.load_state_dict(saved["model"])
            gather = StateDictOptions(full_state_dict=True)
            full = get_optimizer_state_dict(first, optimizer, options=gather)
            set_optimizer_state_dict(third, restored, full, options=gather)
            for model, again in ((second, resumed), (third, restored)):
                train(model, again, share(data()), STEPS - STEPS // 2)
                same(model.parameters(), reference.parameters())
                assert again.param_groups[0]["penalty"] == options["penalty"]
                for p, q in zip(model.parameters(), reference.parameters(), strict=True):
                    for name, value in single.state[q].items():
                        same([again.state[p][name]], [value])


def example() -> None:
    runpy.run_path(str(EXAMPLE))["main"]()


# ------------------------------------------------------------ two processes


def _process(rank: int, file: str, tasks) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=PROCESSES)
    try:
        for task in tasks:
            task()
    finally:
        dist.destroy_process_group()


def run(tmp_path, *tasks) -> None:
    """Run the tasks in new processes: where possible, forks of one that has imported torch."""
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    if method == "forkserver":
        multiprocessing.set_forkserver_preload(
            ["pytest", "torch._dynamo", "torch.distributed.fsdp", "adagrad_diff.torch"]
        )
    arguments = str(tmp_path / "rendezvous"), tasks
    mp.start_processes(_process, arguments, nprocs=PROCESSES, start_method=method)


def test_two_processes_give_the_result_of_one(tmp_path):
    """All in the same two, which take longer to start than the tasks do."""
    run(tmp_path, ddp, fsdp2, fsdp2_state, example)
