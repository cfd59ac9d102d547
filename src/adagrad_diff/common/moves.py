"""How far one step may go where squared differences are averaged and not summed.

A gradient that stays the same has no differences: their average decays, and steps by gradient / sqrt(average) would grow without
end. So a weight is at least |direction| / MAX_MOVE, and no coordinate moves by more than MAX_MOVE learning rates in one step.
"""

MAX_MOVE = 10.0  # chosen by the study in docs/learning_rates.md: it keeps what small learning rates gain
