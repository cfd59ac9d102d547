"""The version, which every room may write down."""

__version__ = "0.2.0"
