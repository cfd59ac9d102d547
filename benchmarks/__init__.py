"""Benchmarks beside peers: `python -m benchmarks` from the root of the repository prints every table.

A module here is one table. It has a docstring (the title) and a list CASES of functions; each sets up one problem and
yields the rows it measured, made with the tools of `benchmarks._timing`.
"""
