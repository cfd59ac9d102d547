"""Gradients that are not finite, and replaced parameters."""

import math

import pytest

torch = pytest.importorskip("torch")

from torch_twin import KINDS, MODES, PENALTIES, same, states_of  # noqa: E402

from adagrad_diff.torch import AdaGradDiff, GroupL2  # noqa: E402
from pairwise import pairwise  # noqa: E402

pytestmark = pytest.mark.peer

SIZE = 30


@pairwise(
    mode=MODES,
    kind=KINDS,
    penalty=[None, *PENALTIES],
    first=[0, 2],
    bad=[math.nan, math.inf, -math.inf],
)
def test_a_nan_gradient_gives_a_nan_weight(kind, mode, penalty, first, bad):
    """A group becomes NaN as a whole. Nothing else does."""
    x = torch.ones(2, 3, requires_grad=True)
    optimizer = kind([x], lr=0.01, penalty=penalty, weight_decay=0.0, **MODES[mode])
    for n in range(4):
        x.grad = torch.full((2, 3), 0.1 + n)
        if n == first:
            x.grad[0, 1] = bad
        optimizer.step()
    grouped = isinstance(penalty, GroupL2)
    assert x[0].isnan().tolist() == [grouped, True, grouped]
    assert x[1].isnan().all() == x[1].isnan().any() == (grouped and penalty.over == "tensor")


@pairwise(kind=KINDS, mode=MODES, bad=[math.nan, math.inf])
def test_steps_with_nonfinite_gradients_are_skipped_on_request(kind, mode, bad):
    """The whole step is skipped, in all groups."""
    params, others = ([torch.ones(3, requires_grad=True) for _ in range(2)] for _ in range(2))
    checked = {"params": params[:1], "skip_nonfinite": True}
    optimizer = kind([checked, {"params": params[1:]}], lr=0.1, **MODES[mode])
    plain = kind([{"params": others}], lr=0.1, **MODES[mode])
    for n in range(4):
        for p, q in zip(params, others, strict=True):
            p.grad, q.grad = (torch.tensor([1.0, -2.0, 0.5]) + n for _ in range(2))
        if n == 1:
            params[0].grad[n] = bad
        else:
            plain.step()
        optimizer.step()
        same((params, states_of(optimizer)), (others, states_of(plain)))
    params[1].grad[0] = bad  # This group has not requested it.
    optimizer.step()
    assert params[1].isnan().tolist() == [True, False, False]


def test_nonfinite_sparse_gradients_are_skipped():
    x = torch.ones(4, 2, requires_grad=True)
    optimizer = AdaGradDiff([x], lr=0.1, skip_nonfinite=True)
    x.grad = torch.sparse_coo_tensor([[1]], [[math.nan, 1.0]], (4, 2), check_invariants=True)
    optimizer.step()
    assert (x == 1).all()
    assert not optimizer.state


@pairwise(kind=KINDS, mode=MODES, size=[1, 10, 2 * SIZE])
def test_a_replaced_parameter_is_an_error(kind, mode, size):
    p = torch.ones(SIZE, requires_grad=True)
    optimizer = kind([p], lr=0.1, **MODES[mode])
    p.grad = torch.ones(SIZE)
    optimizer.step()
    p.data = torch.ones(size)
    for shape in (SIZE, size):
        with pytest.raises(
            RuntimeError, match=rf"have shapes \({size},\), \({shape},\) and \({SIZE},\): the param"
        ):
            optimizer.step()
        p.grad = None
        p.grad = torch.ones(size)
    del optimizer.state[p]
    optimizer.step()
    assert p[0].item() == pytest.approx(0.9, abs=2e-3)
