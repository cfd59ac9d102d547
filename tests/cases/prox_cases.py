"""The cases of all penalties."""

import prox_calculus
import prox_chains
import prox_norms
import prox_planes

CASES = [
    case
    for module in (prox_norms, prox_chains, prox_planes, prox_calculus)
    for case in module.CASES
]
