"""
A LightningModule with AdamDiff
===============================

The optimizer is returned by ``configure_optimizers``, with a scheduler. Training resumes from a
checkpoint. Needs ``pip install lightning``.
"""

import tempfile
import warnings
from pathlib import Path

import lightning
import torch
from torch.nn.functional import mse_loss
from torch.utils.data import DataLoader, TensorDataset

from adagrad_diff.torch import L1, AdamDiff


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(20, 1)
        self.losses = []

    def training_step(self, batch, _):
        X, y = batch
        loss = mse_loss(self.layer(X), y)
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self):
        groups = [
            {"params": [self.layer.weight], "penalty": L1(0.05)},
            {"params": [self.layer.bias]},
        ]
        optimizer = AdamDiff(groups, lr=0.02)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=20)]


def fit(directory, epochs, resume=None):
    lightning.seed_everything(0, verbose=False)
    X = torch.randn(256, 20)
    loader = DataLoader(TensorDataset(X, X[:, :3].sum(1, keepdim=True)), batch_size=64)
    model = Regression()
    trainer = lightning.Trainer(
        default_root_dir=directory,
        max_epochs=epochs,
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=10.0,
    )
    trainer.fit(model, loader, ckpt_path=resume)
    trainer.save_checkpoint(Path(directory) / "last.ckpt")
    return model


def main():
    warnings.simplefilter("ignore")  # about the number of workers
    with tempfile.TemporaryDirectory() as directory:
        whole = fit(directory, epochs=40)
        fit(directory, epochs=20)
        resumed = fit(directory, epochs=40, resume=Path(directory) / "last.ckpt")
    print(f"The loss fell from {whole.losses[0]:.3f} to {whole.losses[-1]:.3f}.")
    zeros = int((whole.layer.weight == 0).sum())
    print(f"{zeros} of 20 weights are exactly zero.")
    assert torch.equal(whole.layer.weight, resumed.layer.weight)
    assert whole.losses[-1] < 0.1 * whole.losses[0]
    assert zeros > 10


if __name__ == "__main__":
    main()
