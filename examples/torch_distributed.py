"""
Training in several processes with PyTorch
==========================================

Copies of the model (DDP), its parameters in shards (FSDP2), and a checkpoint in the middle::

    torchrun --nproc-per-node 2 examples/torch_distributed.py

Here the processes are on CPUs (gloo); on GPUs say "nccl" and move the model there. Started without
torchrun, it starts two processes by itself. A checkpoint of torch.distributed.checkpoint is written
by all of them, each its own shards; any other number of processes can go on from it. The picture
shows that it is one and the same training all three times.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from adagrad_diff.experiments.style import GREY, METHODS, style
from adagrad_diff.torch import L1, AdamWDiff

SAMPLES, FEATURES, STEPS = 256, 20, 60


def data():
    """A target of few features; each process has its own rows of it."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(SAMPLES, FEATURES, generator=generator)
    mine = slice(dist.get_rank(), None, dist.get_world_size())
    return X[mine], (X[:, :3].sum(1, keepdim=True).tanh())[mine]


def setup(way):
    """Return a model, which is wrapped or sharded first, and an optimizer of its parameters."""
    torch.manual_seed(0)  # the same weights everywhere
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 1))
    model = DistributedDataParallel(model) if way == "DDP" else fully_shard(model)
    return model, AdamWDiff(model.parameters(), lr=1e-2, penalty=L1(1e-3))


def train(model, optimizer, steps):
    """The loss of every step, as the mean over all samples."""
    X, y = data()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), y)
        loss.backward()  # gradients are averaged over the processes
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(float(total) / dist.get_world_size())
    return losses


def main(file=None):
    """Train in one of the connected processes. The first one writes the losses into the file."""
    losses = {}
    for way in ("DDP", "FSDP2"):
        losses[way] = train(*setup(way), STEPS)

    model, optimizer = setup("FSDP2")
    train(model, optimizer, STEPS // 2)
    place = [tempfile.mkdtemp()]
    dist.broadcast_object_list(place)  # one directory for all
    weights, memory = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": memory}, checkpoint_id=place[0])

    model, optimizer = setup("FSDP2")  # as a job that starts again
    weights, memory = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": memory}, checkpoint_id=place[0])
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=memory)
    losses["FSDP2, resumed"] = train(model, optimizer, STEPS - STEPS // 2)

    if dist.get_rank() == 0:
        for way, steps in losses.items():
            print(
                f"{way:>14}: loss {steps[-1]:.4f} after {STEPS} steps, {dist.get_world_size()} processes"
            )
        if file is not None:
            Path(file).write_text(json.dumps(losses))
    last = [steps[-1] for steps in losses.values()]
    assert max(last) - min(last) < 1e-4  # they are one and the same training
    assert losses["FSDP2"][STEPS // 2 :] == losses["FSDP2, resumed"]


def picture(losses):
    """Three trainings, one line; the one that was resumed begins in the middle."""
    with style():
        _, axes = plt.subplots(figsize=(5.2, 2.6), layout="constrained")
        axes.semilogy(
            losses["DDP"],
            color=METHODS["AdaGrad-Diff"]["color"],
            linewidth=4,
            alpha=0.35,
            label="DDP",
        )
        axes.semilogy(losses["FSDP2"], color="black", linewidth=0.8, label="FSDP2")
        resumed = range(STEPS // 2, STEPS)
        axes.semilogy(
            resumed,
            losses["FSDP2, resumed"],
            "o",
            color="black",
            markersize=2.5,
            label="FSDP2, resumed",
        )
        axes.axvline(STEPS // 2, color=GREY, linewidth=0.6, linestyle=":")
        axes.set(xlabel="step", ylabel="loss of all samples")
        axes.legend()
        plt.show()


def alone():
    """Without torchrun: start two processes, show what they print, and draw what they found."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "losses.json"
        torchrun = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
        ]
        command = [*torchrun, sys.argv[0], str(file)]
        threads = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, check=True, env=threads, stdout=subprocess.PIPE, text=True)
        print(done.stdout.rstrip())
        picture(json.loads(file.read_text()))


if __name__ == "__main__":
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        main(*sys.argv[1:])
        dist.destroy_process_group()
    else:
        alone()
