"""What all studies share: how figures look, and results that are written whole or not at all."""
