"""Spark's logistic regression, on two cores of this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "OFF",
}


@contextmanager
def spark_solver(
    A: np.ndarray, y: np.ndarray, alpha: float
) -> Iterator[Callable[[float], np.ndarray]]:
    """tolerance -> coefficients; the rows are in Spark's memory, one partition for each core."""
    import pyarrow
    from pyarrow import parquet
    from pyspark.ml.classification import LogisticRegression
    from pyspark.ml.functions import array_to_vector
    from pyspark.sql import SparkSession

    settings = SparkSession.builder.master("local[2]")
    for name, value in SETTINGS.items():
        settings = settings.config(name, value)
    spark = settings.getOrCreate()
    # Its loss is the mean plus regParam / 2 |w|^2, as ours; what it would do to columns by default is turned off.
    plain = {
        "regParam": alpha,
        "elasticNetParam": 0.0,
        "standardization": False,
        "fitIntercept": False,
        "maxIter": 200,
    }
    try:
        with tempfile.TemporaryDirectory() as folder:
            flat = pyarrow.array(np.ascontiguousarray(A).reshape(-1))
            columns = {"x": pyarrow.FixedSizeListArray.from_arrays(flat, A.shape[1]), "label": y}
            columns["x"] = columns["x"].cast(pyarrow.list_(pyarrow.float64()))
            parquet.write_table(pyarrow.table(columns), Path(folder) / "rows.parquet")
            read = spark.read.parquet(str(Path(folder) / "rows.parquet"))
            rows = (
                read.select(array_to_vector("x").alias("features"), "label").repartition(2).cache()
            )
            assert rows.count() == len(A)  # all of them are read, and kept
        yield lambda tol: LogisticRegression(tol=tol, **plain).fit(rows).coefficients.toArray()
    finally:
        spark.stop()
