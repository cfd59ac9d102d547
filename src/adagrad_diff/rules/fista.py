"""FISTA as a rule. `solvers.fista.FISTASolver` makes its steps, because it may reject one."""

from typing import Any

from .base import OneStepRule, fixed, frozen


@frozen
class FISTA(OneStepRule):
    r"""The accelerated proximal gradient method. For smooth f; there is no step size.

    .. math:: x^{k+1} = \text{prox}_{\gamma\varphi}(y^k - \gamma \nabla f(y^k)), \qquad t_{k+1} =
              \frac{1 + \sqrt{1 + 4 t_k^2}}{2}, \qquad y^{k+1} = x^{k+1} + \frac{t_k - 1}{t_{k+1}}
              (x^{k+1} - x^k)

    The step is halved until f(x^{k+1}) is not above the quadratic model :math:`f(y^k) + \langle
    \nabla f(y^k), x^{k+1} - y^k \rangle + \|x^{k+1} - y^k\|^2 / 2\gamma`. Momentum is lost (t = 1,
    y = x) when it leads uphill: :math:`\langle y^k - x^{k+1}, x^{k+1} - x^k \rangle > 0`. The
    reference proves convergence with the proximal step; the restart is a heuristic that works well.

    An iteration is one evaluation of f and its gradient. The first makes a short step, a thousandth
    of :math:`1 + \|x^1\|`, and the local :math:`\|\Delta x\| / \|\Delta g\|` (at most a thousand
    first steps) is where FISTA begins. Then each of its steps takes two iterations: one goes to
    x^{k+1}, and the other evaluates f at y^{k+1} while x does not change. A step that is too long
    takes one more. At the beginning and after a restart y = x, so none is needed.

    Examples
    --------
    >>> from adagrad_diff import FISTA, minimize
    >>> result = minimize(lambda x: (0.5 * x @ x, x), [3.0, -4.0], rule=FISTA(), max_iter=30)
    >>> bool(result.fun < 1e-9)
    True

    References
    ----------
    Beck, Teboulle: A fast iterative shrinkage-thresholding algorithm for
    linear inverse problems, 2009. O'Donoghue, Candes: Adaptive restart for accelerated gradient
    schemes, 2015. The first step is ours.
    """

    eta: Any = fixed(None)

    def init(self, *_):
        raise NotImplementedError("FISTA is not a step-size rule: solvers/fista.py has its steps.")

    update = init
