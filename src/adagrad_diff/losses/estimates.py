"""Gradients from minibatches, for any number of trajectories and for classes side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .. import kernels
from .minibatch import Minibatch


class Estimates:
    """The estimates of one run: v_n = base + what a batch says, the base being that of a snapshot or of the step before."""

    def __init__(self, loss: Minibatch, x: np.ndarray):
        self.loss, model, columns = loss, loss.loss, x.size // len(x)
        self.features, samples = model.A.shape[1], model.A.shape[0]
        self._factor, dtype = samples / loss.size, model.dtype
        self.rows, self._value = np.empty(loss.size, np.int64), np.zeros(columns)
        self._z, self._z_prev, self._held = (
            np.empty((loss.size, columns), dtype) for _ in range(3)
        )
        self._own = replace(
            model.samples((columns,)),
            b=np.empty(loss.size, model.b.dtype),
            weight=np.empty(loss.size, dtype),
            r=self._z,
        )
        self._residuals = self._own.residuals()
        self._residuals_prev = replace(self._own, r=self._z_prev).residuals()
        self.y, self.base, self.held = (
            np.zeros_like(x),
            np.zeros_like(x),
            np.zeros((samples, columns), dtype),
        )

    def snapshot(self, x: np.ndarray, g: np.ndarray, r: np.ndarray) -> None:
        """A point, its gradient and the residuals of all samples there."""
        np.copyto(self.y, x)
        np.copyto(self.base, g)
        self.held = r.reshape(len(r), -1)

    def __call__(
        self, n: int, x: np.ndarray, x_prev: np.ndarray, v_prev: np.ndarray, out: np.ndarray
    ) -> None:
        """The estimate at x after n steps, from batch n."""
        kernels.batch(self.loss.seed, n, self.loss.order, self.rows)
        self.of_rows(x, x_prev, v_prev, out, 1.0 - self.loss.size / self.loss.samples)

    def of_rows(
        self, x: np.ndarray, x_prev: np.ndarray, v_prev: np.ndarray, out: np.ndarray, keep: float
    ) -> None:
        """That of the samples in `rows`; `keep` is the part of the estimate before that "storm" corrects, 1 - a."""
        loss, model, rows = self.loss, self.loss.loss, self.rows
        np.take(model.b, rows, out=self._own.b)
        np.take(model.weight, rows, out=self._own.weight)
        self._own.weight[...] *= self._factor
        r = self._at(x, self._z, self._residuals)
        if loss.reduce == "svrg":
            np.take(self.held, rows, axis=0, out=self._held)
            r -= self._factor * self._held
            np.copyto(out, self.base)
            self._add_ridge(x - self.y, out)
        elif loss.reduce == "storm":
            r -= keep * self._at(x_prev, self._z_prev, self._residuals_prev)
            np.multiply(v_prev, keep, out=out)
            self._add_ridge(x - keep * x_prev, out)
        else:
            out.fill(0)
            self._add_ridge(x, out)
        self._add_products(r, out.reshape(len(out), -1))

    def _at(self, x: np.ndarray, z: np.ndarray, residuals: Any) -> np.ndarray:
        """The residuals of the batch at x."""
        model, columns = self.loss.loss, x.reshape(len(x), -1)
        with np.errstate(all="ignore"):  # what overflows is seen in the end of the round
            self.loss.rows.dot(self.rows, columns[: self.features], z)
            if model.intercept:
                kernels.intercept_offset(
                    columns, model.center, offset := np.empty(columns.shape[1], z.dtype)
                )
                z += offset
            residuals(0, len(z), self._value)
        return z

    def _add_ridge(self, x: np.ndarray, out: np.ndarray) -> None:
        if l2 := self.loss.loss.l2:
            out[: self.features] += l2 * x[: self.features]

    def _add_products(self, r: np.ndarray, out: np.ndarray) -> None:
        model = self.loss.loss
        self.loss.rows.tdot(self.rows, r, out[: self.features])
        if model.intercept:
            total = r.sum(axis=0)
            out[self.features] += total
            if model.center.size:
                out[: self.features] -= np.outer(model.center, total)
