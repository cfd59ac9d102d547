"""How far a rule that forgets differences may move: one number for the core, PyTorch and optax."""

MAX_MOVE = 10.0  # times the step size
