"""The rules of the literature as plain NumPy formulas, one trajectory at a time: what the tests of rules compare with.

Nothing here imports the package. Each function takes a loss x -> (f, g), a start, prox(z, step) and the number of iterations,
and gives x^1, x^2, ...; `one` is the 0-1 matrix of "coordinates i and j are in one block".
"""

import numpy as np


def norm(x):
    return np.sqrt(np.sum(x**2))


def by_metric(step):
    """x+ = prox(x - s g) with s = step(all gradients so far, all iterates so far)."""

    def run(loss, x, prox, N, **parameters):
        xs, gs = [x], []
        for _ in range(N):
            gs.append(loss(xs[-1])[1])
            s = step(np.array(gs), np.array(xs), **parameters) * np.ones(x.size)
            xs.append(prox(xs[-1] - s * gs[-1], s))
        return np.array(xs)

    return run


def forgetting(values, beta):
    """sum_k (1 - beta) beta^(n - k) values_k"""
    return (1 - beta) * np.sum(beta ** np.arange(len(values))[::-1, None] * values, axis=0)


def changes(g):
    return np.diff(g, axis=0, prepend=np.zeros((1, g.shape[1])))


@by_metric
def Constant(g, x, eta):
    return eta


@by_metric
def AdaGradNorm(g, x, eta, b0):
    return eta / np.sqrt(b0**2 + np.sum(g**2))


@by_metric
def DelayedAdaGrad(g, x, eta, beta, power, one):
    return eta / (beta + one @ np.sum(g[:-1] ** 2, axis=0)) ** power


@by_metric
def RMSProp(g, x, eta, beta, eps, one):
    return eta / (eps + np.sqrt(one @ forgetting(g**2, beta)))


@by_metric
def RMSDiff(g, x, eta, beta, eps, max_move, one):
    v = one @ forgetting(changes(g) ** 2, beta) / (1 - beta ** len(g))
    return eta / (eps + np.maximum(np.sqrt(v), np.sqrt(one @ g[-1] ** 2) / max_move))


@by_metric
def AdaDelta(g, x, eta, rho, eps, one):
    moves = np.diff(x, axis=0, prepend=x[:1])
    v, u = (one @ forgetting(values**2, rho) for values in (g, moves / eta))
    return eta * np.sqrt(u + eps) / np.sqrt(v + eps)


@by_metric
def KATE(g, x, eta, delta, eps, one):
    squares = g**2 @ one
    b = np.cumsum(squares, axis=0)
    m = np.sqrt(np.sum(delta * squares + squares / (b + eps), axis=0))
    return eta * np.where(m > 0, m / (b[-1] + eps), 1.0)


@by_metric
def DoG(g, x, eps, first, one):
    r = np.maximum(
        first * (1 + np.sqrt(one @ x[0] ** 2)), np.max(np.sqrt((x - x[0]) ** 2 @ one), axis=0)
    )
    return r / np.sqrt(eps + one @ np.sum(g**2, axis=0))


def polynomial_average(xs, gamma):
    """Of x^2, x^3, ...: weights that grow like t^gamma."""
    average = xs[0]
    for t, x in enumerate(xs[1:], 1):
        c = (1 + gamma) / (t + gamma)
        average = (1 - c) * average + c * x
    return average


def moments(differences):
    """Adam, or Adam with differences and bounded moves."""

    def run(loss, x, prox, N, eta, beta1, beta2, eps, one, max_move=np.inf):
        xs, gs = [x], []
        for n in range(1, N + 1):
            gs.append(loss(xs[-1])[1])
            g = np.array(gs)
            m = forgetting(g, beta1) / (1 - beta1**n)
            v = one @ forgetting((changes(g) if differences else g) ** 2, beta2) / (1 - beta2**n)
            s = eta / (eps + np.maximum(np.sqrt(v), np.sqrt(one @ m**2) / max_move))
            xs.append(prox(xs[-1] - s * m, s))
        return np.array(xs)

    return run


Adam, AdamDiff = moments(False), moments(True)


def DualAveraging(loss, x, prox, N, eta, eps, one):
    xs, gs = [x], []
    for n in range(1, N + 1):
        gs.append(loss(xs[-1])[1])
        s = eta / (eps + np.sqrt(one @ np.sum(np.array(gs) ** 2, axis=0)))
        xs.append(prox(x - s * np.sum(gs, axis=0), n * s))
    return np.array(xs)


def FreeAdaGradDiff(loss, x, prox, N, eps, first, one):
    xs, gs, rs, blocks = [x], [], [], len(np.unique(one, axis=0))
    for _ in range(N):
        gs.append(loss(xs[-1])[1])
        rs.append(max(first * (1 + norm(x)), *(norm(y - x) for y in xs), 0.0) / np.sqrt(blocks))
        w = eps + np.sqrt(one @ np.sum(changes(np.array(gs)) ** 2, axis=0))
        xs.append(prox(x - np.array(rs) @ np.array(gs) / w, np.sum(rs) / w))
    return np.array(xs)


def DAdaptation(loss, x, prox, N, eps, d0, start):
    xs, a2, s, d, weight, squares = [x], start, 0.0, d0, 0.0, 0.0
    for _ in range(N):
        g = loss(xs[-1])[1]
        a2, s, weight = a2 + g**2, s + d * g, weight + d
        w = np.sqrt(a2) + eps
        squares += d**2 * np.sum(g**2 / w)
        if np.any(s):
            d = max(d, (np.sum(s**2 / w) - squares) / np.sum(np.abs(s)))
        xs.append(prox(x - s / w, weight / w))
    return np.array(xs)


def Prodigy(loss, x, prox, N, beta1, beta2, eps, d0):
    xs, m, v, r, s, d, beta3 = [x], 0.0, 0.0, 0.0, 0.0, d0, np.sqrt(beta2)
    for _ in range(N):
        g, last = loss(xs[-1])[1], d
        m, v = beta1 * m + (1 - beta1) * d * g, beta2 * v + (1 - beta2) * (d * g) ** 2
        r, s = beta3 * r + d**2 * (g @ (x - xs[-1])), beta3 * s + d**2 * g
        if np.any(s):
            d = max(d, r / np.sum(np.abs(s)))
        w = np.sqrt(v) + d * eps
        xs.append(prox(xs[-1] - last * m / w, last**2 / w))
    return np.array(xs)


def short_step(loss, x, prox):
    """A thousandth of 1 + ||x|| along the gradient: where that leads, and ||dx|| / ||dg||, at most 1000 steps."""
    g = loss(x)[1]
    s = 1e-3 * (1 + norm(x)) / norm(g)
    y = prox(x - s * g, s * np.ones(x.size))
    return y, min(norm(y - x) / norm(loss(y)[1] - g), 1e3 * s)


def AdaPG(loss, x, prox, N):
    y, gamma = short_step(loss, x, prox)
    xs, gs, before = [x, y], [None, loss(y)[1]], gamma
    for _ in range(N - 1):
        xs.append(prox(xs[-1] - gamma * gs[-1], gamma * np.ones(x.size)))
        gs.append(loss(xs[-1])[1])
        dx, dg = xs[-1] - xs[-2], gs[-1] - gs[-2]
        if np.any(dx):
            # gamma l (gamma c - 1), multiplied out: c is 0 / 0 where the gradient has not changed, but l c is not.
            root = np.sqrt(max((gamma**2 * (dg @ dg) - gamma * (dg @ dx)) / (dx @ dx), 0.0))
            longest = gamma * np.sqrt(1 + gamma / before)
            gamma, before = min(longest, gamma / (2 * root)) if root else longest, gamma
    return np.array(xs)


def FISTA(loss, x, prox, N):
    """Every evaluation after the first counts as an iteration; f and g at x are known, also where y = x."""
    y, step = short_step(loss, x, prox)
    xs, evaluations, t = [x, y], 1, 1.0
    while True:
        f, g = loss(y)
        evaluations += bool(np.any(y != xs[-1]))
        while True:
            new = prox(y - step * g, step * np.ones(x.size))
            d = new - y
            evaluations += 1
            if evaluations > N:
                return np.array(xs)
            if loss(new)[0] <= f + g @ d + d @ d / (2 * step) + 4096 * np.finfo(float).eps * abs(f):
                break
            step /= 2
        if (y - new) @ (new - xs[-1]) > 0:
            after, momentum = 1.0, 0.0
        else:
            after = (1 + np.sqrt(1 + 4 * t**2)) / 2
            momentum = (t - 1) / after
        y, t = new + momentum * (new - xs[-1]), after
        xs.append(new)


def AGD(loss, x, prox, N, eta, beta1, beta2, eps, one):
    xs, gs, means = [x], [], [np.zeros(x.size)]
    for n in range(1, N + 1):
        gs.append(loss(xs[-1])[1])
        means.append(forgetting(np.array(gs), beta1) / (1 - beta1**n))
        v = one @ forgetting(np.diff(means, axis=0) ** 2, beta2) / (1 - beta2**n)
        s = eta / np.maximum(np.sqrt(v), eps)
        xs.append(prox(xs[-1] - s * means[-1], s))
    return np.array(xs)


def AdaPEG(loss, x, prox, N, eta, eps, one):
    """Optimistic dual averaging; without a prox it is `past_extragradient`."""
    xs, gs = [x], []
    for n in range(1, N + 1):
        gs.append(loss(xs[-1])[1])
        s = eta / (eps + np.sqrt(one @ np.sum(changes(np.array(gs)) ** 2, axis=0)))
        xs.append(prox(x - s * (np.sum(gs[1:], axis=0) + gs[-1]), n * s))
    return np.array(xs)


def past_extragradient(loss, x, N, eta, eps):
    """The two steps of each iteration, with an anchor at the start."""
    xs, z, last = [x], x, loss(x)[1]
    squares, before = last @ last, 0.0
    for _ in range(N):
        gamma = (eps + np.sqrt(squares)) / eta
        base = z + (1 - before / gamma) * (x - z)
        xs.append(base - last / gamma)
        g = loss(xs[-1])[1]
        z, before = base - g / gamma, gamma
        squares, last = squares + (g - last) @ (g - last), g
    return np.array(xs)


def UniXGrad(loss, y, prox, N, eta, eps):
    """One gradient at the average z with the newest y, and one at the average of the x."""
    points, xs, squares = [y], [], 0.0
    for t in range(1, N // 2 + 2):
        weights = np.arange(1, t + 1)
        step = eta * t / np.sqrt(eps + squares)
        M = loss(weights @ np.array([*xs, y]) / weights.sum())[1]
        xs.append(prox(y - step * M, step * np.ones(y.size)))
        average = weights @ np.array(xs) / weights.sum()
        g = loss(average)[1]
        y, squares = (
            prox(y - step * g, step * np.ones(y.size)),
            squares + t**2 * ((g - M) @ (g - M)),
        )
        later = np.arange(1, t + 2)
        points += [average, later @ np.array([*xs, y]) / later.sum()]
    return np.array(points[: N + 1])


def UniAdaGrad(loss, x, prox, N, eta, eps, one):
    """Follow the leader, with the sum over all centers, and one prediction."""
    zs, gs, points, ws = [x], [], [x], [np.zeros(x.size)]
    for n in range(1, N + 1):
        gs.append(loss(points[-1])[1])
        k = np.arange(1, n + 1)[:, None]
        ws.append(eps + np.sqrt(one @ np.sum((k * changes(np.array(gs))) ** 2, axis=0)))
        pulls = np.sum(np.diff(ws, axis=0) * np.array(zs), axis=0)
        slope = np.sum(k * np.array(gs), axis=0) + (n + 1) * gs[-1]
        A = (n + 1) * (n + 2) / 2
        zs.append(prox((pulls - eta * slope) / ws[-1], A * eta / ws[-1]))
        weights = np.arange(1, n + 2)
        points.append(weights @ np.array(zs) / weights.sum())
    return np.array(points)


def ACFGM(loss, x, prox, N, alpha=0.1):
    """After a short step, as the authors have it, with the first step from the local curvature."""
    ones = np.ones(x.size)
    start, curvature = short_step(loss, x, prox)
    xs, y = [x, start], start
    eta, tau, last_tau, beta = 0.4 * curvature, 0.0, None, 1 - np.sqrt(6) / 3
    for t in range(1, N):
        f, g = loss(xs[-1])
        if t > 1:
            before, slope = loss(xs[-2])
            bottom = before - f - g @ (xs[-2] - xs[-1])
            L = (g - slope) @ (g - slope) / (2 * bottom) if bottom > 0 else 0.0
        if t == 2:
            eta, tau, last_tau = min((1 - beta) * eta, 1 / (4 * L)), 1.0, 0.0
        elif t > 2:
            if L > 0:
                eta = min(4 / 3 * eta, (last_tau + 1) / tau * eta, tau / (4 * L))
            last_tau, tau = tau, tau + alpha / 2 + 2 * (1 - alpha) * eta * L / tau
        z = prox(y - eta * g, eta * ones)
        y = y if t == 1 else (1 - beta) * y + beta * z
        xs.append((z + tau * xs[-1]) / (1 + tau))
    return np.array(xs)
