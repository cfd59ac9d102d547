"""Files as numbers: what every format says, what words become, and a sentence for each thing that is wrong."""

import bz2
import gzip
import importlib.util
import lzma

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
from adagrad_diff.datasets import DataError, tables  # noqa: E402
from adagrad_diff.datasets.tables import read_table  # noqa: E402
from looping import looped  # noqa: E402

pytestmark = pytest.mark.peer
ROWS = [
    ("40", "Rome", "m", "3.5", "no"),
    ("61", "Oslo", "f", "", "yes"),
    ("52", "", "f", "-1e2", "no"),
    ("40", "Rome", "m", "7", "no"),
]
NAMES = ("age", "city", "sex", "dose", "ill")


def written(path, rows=ROWS, names=NAMES, separator=","):
    path.write_text(
        "\n".join(separator.join(row) for row in (names, *rows)) + "\n", encoding="utf-8"
    )
    return path


def naive(rows, names, target):
    """Plain loops over the words of a CSV file: one column per number, category, or second of two categories."""
    columns, labels = [], []
    for name, values in zip(names, zip(*rows, strict=True), strict=True):
        if name == target:
            continue
        try:
            known = sorted(float(v) for v in values if v)
            middle = (known[(len(known) - 1) // 2] + known[len(known) // 2]) / 2
            columns.append([float(v) if v else middle for v in values])
            labels.append(name)
        except ValueError:
            words = [v or "(missing)" for v in values]
            kinds = sorted(set(words))
            for kind in kinds if len(kinds) > 2 else kinds[1:]:
                columns.append([float(word == kind) for word in words])
                labels.append(f"{name}={kind}")
    return labels, np.array(columns).T


def test_a_table_is_what_plain_loops_make_of_it(tmp_path):
    table = read_table(written(tmp_path / "people.csv"), "ill", impute=True)
    labels, A = naive(ROWS, NAMES, "ill")
    assert [str(feature) for feature in table.features] == labels
    np.testing.assert_array_equal(table.A, A)
    assert table.y.tolist() == ["no", "yes", "no", "no"]
    assert (table.target, table.kind, table.columns, table.name) == ("ill", "CSV", 4, "people.csv")


def test_beside_pandas_and_scikit_learn(tmp_path):
    """Indicators as get_dummies makes them, medians and standard deviations as scikit-learn's."""
    preprocessing, impute = (
        pytest.importorskip("sklearn.preprocessing"),
        pytest.importorskip("sklearn.impute"),
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.standard_normal(60) * 10.0**j for j in range(4)})
    frame.loc[::7, "x2"] = np.nan
    frame["kind"] = rng.choice(["a", "b", "c"], 60)
    frame["y"] = rng.standard_normal(60)
    frame.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv", "y", impute=True, standardize=True)
    numbers = impute.SimpleImputer(strategy="median").fit_transform(frame[["x0", "x1", "x2", "x3"]])
    np.testing.assert_allclose(
        table.A[:, :4], preprocessing.StandardScaler().fit_transform(numbers), atol=1e-12
    )
    np.testing.assert_array_equal(table.A[:, 4:], pd.get_dummies(frame["kind"]).to_numpy(float))
    back = table.A[:, :4] * [f.scale for f in table.features[:4]] + [
        f.shift for f in table.features[:4]
    ]
    np.testing.assert_allclose(back, numbers, rtol=1e-12)


def test_every_format_says_the_same(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.integers(-9, 9, (30, 3)).astype(float), rng.integers(0, 2, 30) * 2.0 - 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    text = frame.to_csv(index=False)
    pairs = "".join(
        f"{b:g} " + " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(row) if v) + "\n"
        for row, b in zip(X, y, strict=True)
    )
    writers = {
        "comma.csv": text.encode(),
        "comma": b"\xef\xbb\xbf"
        + text.replace("\n", "\r\n").encode(),  # as Excel writes it, without a suffix
        "semicolon.csv": frame.to_csv(index=False, sep=";", decimal=",").encode(),
        "tab.tsv": frame.to_csv(index=False, sep="\t").encode(),
        "bar.txt": frame.to_csv(index=False, sep="|").encode(),
        "rows.csv": frame.to_csv().encode(),
        "packed.csv.gz": gzip.compress(text.encode()),
        "packed.csv.bz2": bz2.compress(text.encode()),
        "misnamed.svm": lzma.compress(text.encode()),
        "pairs": pairs.encode(),
        "pairs.gz": gzip.compress(b"# a comment\n" + pairs.encode()),
    }
    for name, content in writers.items():
        (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "matrix.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "columns.npz", a=X[:, 0], b=X[:, 1], c=X[:, 2], target=y)
    for name in (*writers, "matrix.npz", "columns.npz"):
        named = None if name.startswith("pairs") or name.endswith(".npz") else "y"
        target = "target" if name == "columns.npz" else named
        table = read_table(tmp_path / name, target)
        A = table.A if isinstance(table.A, np.ndarray) else table.A.toarray()
        np.testing.assert_array_equal(A, X, err_msg=name)
        np.testing.assert_array_equal(table.y, y, err_msg=name)
    assert [str(f) for f in read_table(tmp_path / "matrix.npz").features] == [
        "X[0]",
        "X[1]",
        "X[2]",
    ]
    assert [str(f) for f in read_table(tmp_path / "pairs").features] == ["1", "2", "3"]


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "w": ["u", "v", "u"], "t": [0, 1, 1]})
    path = tmp_path / "t.parquet"
    if importlib.util.find_spec("pyarrow") is None:
        path.write_bytes(b"PAR1 and so on PAR1")
        with pytest.raises(
            ImportError,
            match=r"'t.parquet' is a Parquet file, .* needs pyarrow, .*: pip install pyarrow",
        ):
            read_table(path, "t")
        return
    frame.to_parquet(path)
    table = read_table(path, "t")
    assert [str(f) for f in table.features] == ["a", "w=v"]
    path.write_bytes(b"PAR1 and so on PAR1")
    with pytest.raises(DataError, match="is a Parquet file that cannot be read"):
        read_table(path, "t")


def test_large_and_sparse_stays_sparse(tmp_path):
    """2,300 different words in 2,300 rows make more entries than are held densely."""
    rows = [(str(j), f"w{j % 2300}", str(j % 3)) for j in range(4600)]
    table = read_table(written(tmp_path / "t.csv", rows, ("n", "word", "y")), "y")
    assert table.A.shape == (4600, 2301)
    assert table.A.format == "csr"
    assert table.A.nnz <= 2 * 4600
    np.testing.assert_array_equal(table.A[:, [0]].toarray()[:, 0], np.arange(4600))
    for j in (0, 7, 4599):
        assert str(table.features[table.A[[j], 1:].indices[0] + 1]) == f"word=w{j % 2300}"


def test_sparse_scaling_keeps_zeros(tmp_path):
    (tmp_path / "pairs").write_text("1 1:2 3:4\n-1 3:2\n1 1:2\n-1 1:2\n")
    table = read_table(tmp_path / "pairs", standardize=True)
    dense = np.array([[2, 0, 4], [0, 0, 2], [2, 0, 0], [2, 0, 0.0]])
    root = np.sqrt((dense**2).mean(axis=0))
    np.testing.assert_allclose(table.A.toarray(), dense / np.where(root > 0, root, 1.0))
    assert table.A.nnz == 5


def test_data_sets_by_name(tmp_path):
    from tiny_dataset import CONTENT, DENSE

    (tmp_path / "tiny").write_bytes(CONTENT)
    table = read_table("tiny", directory=tmp_path)
    np.testing.assert_array_equal(table.A, DENSE)
    assert (table.name, table.target, table.kind) == ("tiny", "label", "data set")
    with pytest.raises(
        DataError,
        match=r"There is no file 'tinny', and no data set of that name. The data sets are: splice.t, ",
    ):
        read_table("tinny")
    with pytest.raises(
        DataError, match="'tiny' has a target and features without names: --target is for tables"
    ):
        read_table("tiny", "label", directory=tmp_path)


def test_constants_odd_names_and_row_names(tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    rows = [("1", "7", "x", "1", "u"), ("2", "7", "x", "0", "v"), ("3", "7", "x", "1", "u")]
    table = read_table(written(tmp_path / "t.csv", rows, ("", "c", "word", bad, "w")), "w")
    assert table.left_out == ["c", "word"]
    assert [str(f) for f in table.features] == [bad]
    assert table.notes == [
        "The first column has no name: it is taken for the names of the rows, and left out."
    ]
    table = read_table(written(tmp_path / "h.csv", rows[1:], rows[0]), "5", header=False)
    assert [str(f) for f in table.features] == ["1", "4"]
    assert table.y.tolist() == ["u", "v", "u"]


def test_missing_words(tmp_path):
    path = written(tmp_path / "t.csv", [("1", "u"), ("?", "v"), ("3", "u")], ("a", "y"))
    with pytest.raises(
        DataError,
        match=r"Column 'a' of 't.csv' holds numbers, but '\?' in row 2: .* \(--missing '\?'\)",
    ):
        read_table(path, "y")
    with pytest.raises(
        DataError,
        match=r"Column 'a' of 't.csv' has no value in row 2: fill it in, let --impute do so",
    ):
        read_table(path, "y", missing=["?"])
    assert read_table(path, "y", missing=["?"], impute=True).A.tolist() == [[1.0], [2.0], [3.0]]


WRONG = {
    "empty": (b"", "'f' is empty"),
    "blank": (b" \n\n", "'f' is empty"),
    "binary": (b"\x00\x01\x02" * 100, "'f' is a binary file"),
    "latin-1": ("a,b\né,1\n".encode("latin-1"), r"not text in UTF-8 \(byte 0xe9 at position 4\)"),
    "latin-1 far down": (b"a,y\n" + b"1,2\n" * 30000 + b"\xe9,1\n", r"not text in UTF-8"),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "text in UTF-16"),
    "npy": (b"\x93NUMPY\x01\x00", "one array without a name"),
    "ZIP": (b"PK\x03\x04 and nothing", "no NPZ file of plain arrays"),
    "cut gzip": (gzip.compress(b"a,y\n" * 999)[:30], "'f' cannot be unpacked"),
    "header only": (b"a,y\n", "names columns, but has no rows"),
    "one row": (b"a,y\n1,2\n", "has one row"),
    "no header": (
        b"5.1,3.5,setosa\n4.9,3.0,setosa\n",
        r"holds the number 5\.1: add a line of names, or say --no-header",
    ),
    "twice": (b"a,a,y\n1,2,3\n4,5,6\n", "two columns called 'a'"),
    "ragged": (b"a,y\n1,2\n1,2,3,4\n", r"is not a table: expected 2 fields in line 3, saw 4"),
    "always longer": (b"a,y\n1,2,3\n1,2,3\n", r"is not a table"),
    "no such target": (b"a,yy\n1,2\n2,3\n", "has no column 'y', which --target names"),
    "target alone": (b"y\n1\n2\n", "no column beside the target 'y' that is not constant"),
    "missing": (b"a,y\n1,1\n,2\n,3\n", "Column 'a' of 'f' has no value in row 2 and 1 more"),
    "missing word": (
        b"a,y\nu,1\n,2\nv,3\n",
        r"has no value in row 2: fill it in, let --impute do so \(as a category\)",
    ),
    "nothing there": (
        b"a,b,y\n,1,1\n,2,2\n",
        "Column 'a' of 'f' has no value in any row: leave it out with --drop a",
    ),
    "infinite": (b"a,y\n1,1\ninf,2\n", "Column 'a' of 'f' holds inf in row 2"),
    "huge": (b"a,y\n1,1\n1e200,2\n", r"Column 'a' of 'f' holds 1e\+200 in row 2"),
    "target missing": (b"a,y\n1,1\n2,\n", "The target 'y' of 'f' has no value in row 2"),
    "target infinite": (b"a,y\n1,1\n2,-inf\n", "The target 'y' of 'f' has the value -inf in row 2"),
    "dates": (
        b"d,y\n2024-01-02,1\n2024-01-03,2\n",
        "Column 'd' of 'f' holds dates, such as '2024-01-02'",
    ),
    "names": (
        b"n,y\n" + b"".join(b"n%d,%d\n" % (j, j) for j in range(50)),
        "holds 50 different words in 50 rows",
    ),
    "svmlight with words": (b"yes 1:2 2:3\nno 1:1\n", "labels are numbers, but one is 'yes'"),
    "svmlight that ends": (
        b"1 1:2\n-1 2:3\n" * 30 + b"1 2:x\n",
        "begins like an svmlight file, but does not go on",
    ),
    "svmlight with NaN": (b"1 1:2\n-1 1:nan\n", "'f' holds the value nan"),
    "svmlight without features": (b"# nothing\n1 1:0\n-1 1:0\n", None),
}


@looped("kind", WRONG)
def test_sentences(tmp_path, kind):
    content, sentence = WRONG[kind]
    (tmp_path / "f").write_bytes(content)
    target = None if "svmlight" in kind else "y"
    if sentence is None:
        assert read_table(tmp_path / "f", target).A.shape[0] == 2
        return
    with pytest.raises(DataError, match=sentence) as error:
        read_table(tmp_path / "f", target)
    assert str(error.value)[-1] in ".?" or kind == "no header"
    assert "\n" not in str(error.value)


def test_more_sentences(tmp_path):
    with pytest.raises(DataError, match=r"is a directory: name a file\."):
        read_table(tmp_path, "y")
    with pytest.raises(DataError, match="There is no file"):
        read_table("a\0b", "y")
    path = written(tmp_path / "t.csv")
    with pytest.raises(
        DataError, match=r"has no column 'agee', which --drop names\. Did you mean 'age'\?"
    ):
        read_table(path, "ill", drop=["agee"])
    with pytest.raises(
        DataError,
        match=r"Say which column of 't.csv' is to be predicted, with --target\. Its columns are: 'age', ",
    ):
        read_table(path)
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), y=np.ones(4))
    with pytest.raises(DataError, match=r"columns of one length.* X \(3, 2\), y \(4,\)"):
        read_table(tmp_path / "a.npz")
    np.savez(tmp_path / "o.npz", X=np.array([{}, 1], object), y=np.ones(2))
    with pytest.raises(DataError, match="no NPZ file of plain arrays"):
        read_table(tmp_path / "o.npz")
    frame = pd.DataFrame(
        {"a": [[1], [2]], "d": pd.to_datetime(["2024-01-01", "2024-01-02"]), "y": [1, 2]}
    )
    for column, sentence in (("a", "holds a list in row 1"), ("d", "holds dates or times")):
        with pytest.raises(DataError, match=sentence):
            tables.plain(frame[column], column, "f")


def test_what_objects_may_be():
    """Truth values with gaps, decimals and categories: as Parquet files have them."""
    from decimal import Decimal

    columns = {
        "truth": (pd.Series([True, None, False], dtype=object), [1.0, np.nan, 0.0]),
        "nullable": (pd.Series([1, None, 3], dtype="Int64"), [1.0, np.nan, 3.0]),
        "decimal": (
            pd.Series([Decimal("1.5"), Decimal(2), None], dtype=object),
            [1.5, 2.0, np.nan],
        ),
        "category": (pd.Series(["u", "v", None], dtype="category"), ["u", "v", None]),
        "numbers as categories": (pd.Series([3, 4, 3], dtype="category"), [3.0, 4.0, 3.0]),
    }
    for name, (series, wanted) in columns.items():
        found = tables.plain(series, name, "f")
        np.testing.assert_array_equal(found, np.array(wanted, found.dtype), err_msg=name)
