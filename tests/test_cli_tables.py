"""Files as numbers: formats, words, dates, and a message for each error."""

import bz2
import gzip
import lzma
from decimal import Decimal

import numpy as np
import pytest

pytest.importorskip("click")
pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")
from adagrad_diff._check import InputError  # noqa: E402
from adagrad_diff.cli.tables import Preparation, read_table  # noqa: E402
from looping import looped  # noqa: E402

pytestmark = pytest.mark.peer
DEFAULTS = {
    "drop": (),
    "missing": (),
    "thousands": None,
    "header": True,
    "impute": False,
    "drop_missing_target": False,
    "standardize": False,
    "intercept": True,
    "penalized": True,
}


def read(path, target=None, directory=None, **options):
    """The table and its notes."""
    how = Preparation(**DEFAULTS | options, notes=[])
    return read_table(str(path), target, directory, how), how.notes


def named(table):
    """The columns of a table by the names of its features."""
    A = table.A if isinstance(table.A, np.ndarray) else table.A.toarray()
    return dict(zip(map("=".join, map(dict.values, table.labels)), A.T.tolist(), strict=True))


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


PEOPLE = "age,city,sex,dose,day,ill\n40,Rome,m,3.5,2024-01-03,no\n61,Oslo,f,,2023-12-31,yes\n"
PEOPLE += "52,,f,-1e2,2024-01-01,no\n40,Rome,m,7,2024-01-01T12:00,no\n"


def test_what_columns_become(tmp_path):
    """Medians, indicators, days; and one level fewer per category without a penalty."""
    path = written(tmp_path / "people.csv", PEOPLE)
    table, notes = read(path, "ill", impute=True)
    wanted = {
        "age": [40, 61, 52, 40],
        "dose": [3.5, 3.5, -100, 7],
        "day": [19725, 19722, 19723, 19723.5],
        "city=(missing)": [0, 0, 1, 0],
        "city=Oslo": [0, 1, 0, 0],
        "city=Rome": [1, 0, 0, 1],
        "sex=m": [1, 0, 0, 1],
    }
    assert named(table) == wanted
    assert table.y.tolist() == ["no", "yes", "no", "no"]
    assert (table.target, table.name) == ("ill", "people.csv")
    assert notes == [
        "Column 'day' of 'people.csv' holds dates, which count as days since 1970-01-01."
    ]
    table, _ = read(path, "ill", impute=True, penalized=False)
    del wanted["city=(missing)"]
    assert named(table) == wanted


@looped("intercept", [True, False])
def test_standardization(intercept, tmp_path):
    """It is scikit-learn's, and invertible. Without an intercept, nothing is centered."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.standard_normal(60) * 10.0**j + j for j in range(4)})
    numbers = frame.to_numpy()
    frame["kind"], frame["y"] = rng.choice(["a", "b", "c"], 60), rng.standard_normal(60)
    frame.to_csv(tmp_path / "t.csv", index=False)
    table, _ = read(tmp_path / "t.csv", standardize=True, intercept=intercept)
    center = numbers.mean(axis=0) if intercept else 0.0
    np.testing.assert_allclose(table.A[:, :4], (numbers - center) / numbers.std(axis=0), atol=1e-12)
    np.testing.assert_allclose(table.A * table.scale + table.shift, read(tmp_path / "t.csv")[0].A)
    assert table.scale[4:].tolist() == [1, 1, 1]
    assert not table.shift[4:].any()


def test_sparse_data(tmp_path):
    """Zeros stay: of files in LIBSVM's format, and of many categories."""
    path = written(tmp_path / "pairs", "1 1:2 3:4\n-1 3:2\n1 1:2\n-1 1:2\n")
    table, _ = read(path, standardize=True)
    dense = np.array([[2, 0, 4], [0, 0, 2], [2, 0, 0], [2, 0, 0.0]])
    np.testing.assert_allclose(table.A.toarray(), dense / [np.sqrt(0.75), 1, np.sqrt(2.75)])
    assert table.A.nnz == 5
    rows = "".join(f"{j},w{j % 2300},{j % 3}\n" for j in range(4600))
    table, _ = read(written(tmp_path / "t.csv", "n,word,y\n" + rows), standardize=True)
    assert table.A.shape == (4600, 2301)
    assert table.A.format == "csr"
    assert table.A.nnz <= 2 * 4600
    for j in (0, 7, 4599):
        assert table.labels[table.A[[j], 1:].indices[0] + 1]["category"] == f"w{j % 2300}"


def test_every_format_says_the_same(tmp_path):
    rng = np.random.default_rng(1)
    X, y = rng.integers(-9, 9, (30, 3)) + 0.5, rng.integers(0, 2, 30) * 2.0 - 1
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    text, lines = frame.to_csv(index=False), ["# a comment"]
    for row, label in zip(X, y, strict=True):
        lines.append(" ".join([f"{label:g}", *(f"{j}:{v:g}" for j, v in enumerate(row, 1))]))
    pairs = "\n".join(lines).encode()
    contents = {
        "comma.csv": text.encode(),
        "excel": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        "semicolon.csv": frame.to_csv(index=False, sep=";", decimal=",").encode(),
        "tab.tsv": frame.to_csv(index=False, sep="\t").encode(),
        "bar.txt": frame.to_csv(index=False, sep="|").encode(),
        "rows.csv": frame.to_csv().encode(),
        "packed.csv.gz": gzip.compress(text.encode()),
        "packed.csv.bz2": bz2.compress(text.encode()),
        "packed.csv.xz": lzma.compress(text.encode()),
        "pairs": pairs,
        "pairs.gz": gzip.compress(pairs),
    }
    for name, content in contents.items():
        written(tmp_path / name, content)
    np.savez(tmp_path / "matrix.npz", X=X, y=y)
    np.savez_compressed(tmp_path / "columns.npz", a=X[:, 0], b=X[:, 1], c=X[:, 2], target=y)
    frame.to_parquet(tmp_path / "t.parquet")
    for name in (*contents, "matrix.npz", "columns.npz", "t.parquet"):
        table, notes = read(tmp_path / name, "target" if name == "columns.npz" else None)
        A = table.A if isinstance(table.A, np.ndarray) else table.A.toarray()
        np.testing.assert_array_equal(A, X, err_msg=name)
        np.testing.assert_array_equal(table.y, y, err_msg=name)
        assert bool(notes) == (name == "rows.csv")
    assert list(named(read(tmp_path / "matrix.npz")[0])) == ["X[0]", "X[1]", "X[2]"]
    assert list(named(read(tmp_path / "pairs")[0])) == ["1", "2", "3"]


def test_what_parquet_files_hold(tmp_path):
    """Truth values with gaps, decimals, categories, dates."""
    columns = {
        "truth": [True, None, False, True],
        "nullable": pd.array([1, None, 3, 1], dtype="Int64"),
        "decimal": [Decimal("1.5"), Decimal(2), None, Decimal(0)],
        "category": pd.Categorical(["u", "v", None, "u"]),
        "day": pd.to_datetime(["1970-01-02", "1970-01-03", None, "1970-01-02"]),
        "y": [0, 1, 1, 0],
    }
    pd.DataFrame(columns).to_parquet(tmp_path / "t.parquet")
    found = named(read(tmp_path / "t.parquet", impute=True)[0])
    assert found["nullable"] == [1, 1, 3, 1]
    assert found["decimal"] == [1.5, 2, 1.5, 0]
    assert found["day"] == [1, 2, 1, 1]
    assert found["category=u"] == [1, 0, 0, 1]
    assert found["truth=True"] == [1, 0, 0, 1]


def test_data_sets_by_name(tmp_path, monkeypatch):
    from adagrad_diff.datasets import _registry
    from tiny_dataset import CONTENT, DENSE, ENTRY

    monkeypatch.setitem(_registry.REGISTRY, "tiny", ENTRY)
    written(tmp_path / "tiny", CONTENT)
    table, _ = read("tiny", directory=tmp_path)
    np.testing.assert_array_equal(table.A, DENSE)
    assert (table.name, table.target) == ("tiny", "label")
    with pytest.raises(InputError, match="'tiny' has no names of columns: leave out --target and"):
        read("tiny", "label", directory=tmp_path)
    for name in ("tinny", "a\0b"):
        with pytest.raises(ValueError, match=r"There is no file or data set"):
            read(name)


def test_constants_row_names_and_no_header(tmp_path):
    bad = "<img src=x onerror=alert(1)>"
    rows = "1,7,x,1,u\n2,7,x,0,v\n3,7,x,1,u\n"
    table, notes = read(written(tmp_path / "t.csv", f",c,word,{bad},w\n{rows}"), "w")
    assert named(table) == {bad: [1, 0, 1]}
    assert notes == [
        "The column without a name holds the names of rows, and is left out.",
        "Constant, and left out: 'c', 'word'.",
    ]
    table, _ = read(written(tmp_path / "h.csv", rows), "5", header=False)
    assert named(table) == {"1": [1, 2, 3], "4": [1, 0, 1]}
    assert table.y.tolist() == ["u", "v", "u"]


def test_numbers_as_people_write_them(tmp_path):
    """Separators of thousands are reported, and read if they are declared."""
    path = written(tmp_path / "t.csv", 'a,y\n"1,234",1\n"12,500.5",2\n980,3\n')
    with pytest.raises(
        InputError, match=r"holds numbers, but '1,234' in row 1: .* \(--thousands\)"
    ):
        read(path)
    assert named(read(path, thousands=",")[0]) == {"a": [1234, 12500.5, 980]}
    german = written(tmp_path / "g.csv", "a;y\n1.234,5;1\n2,25;2\n")
    assert named(read(german, thousands=".")[0]) == {"a": [1234.5, 2.25]}
    with pytest.raises(InputError, match=r"holds numbers, but '1.234,5' in row 1"):
        read(german)


def test_missing_values(tmp_path):
    path = written(tmp_path / "t.csv", "a,y\n1,u\n?,v\n3,u\n7,\n")
    with pytest.raises(
        InputError, match=r"holds numbers, but '\?' in row 2: .*\(--missing '\?'\)"
    ) as e:
        read(path)
    assert "The target" not in str(e.value)
    assert "Column 'y' of 't.csv' has no usable value in row 4" in str(e.value)
    with pytest.raises(
        InputError, match=r"Column 'a' .* has no usable value in row 2: fill it in, let"
    ):
        read(path, missing=["?"], drop_missing_target=True)
    table, notes = read(path, missing=["?"], drop_missing_target=True, impute=True)
    assert (named(table), notes) == ({"a": [1, 2, 3]}, ["1 row without a target left out."])


NAMES = b"n,y\n" + b"".join(b"n%d,%d\n" % (j, j) for j in range(50))
WRONG = {
    "empty": (b"", "'f' cannot be read: it is empty"),
    "blank": (b" \n\n", "it is empty"),
    "binary": (b"\x00\x01\x02" * 100, "Name the column of 'f' to predict"),
    "latin-1": ("a,y\né,1\n".encode("latin-1"), r"can't decode byte 0xe9 .*CSV in UTF-8"),
    "latin-1 far down": (b"a,y\n" + b"1,2\n" * 30000 + b"\xe9,1\n", r"can't decode byte 0xe9"),
    "UTF-16": ("a,y\n1,2\n".encode("utf-16"), "'f' cannot be read: .*CSV in UTF-8"),
    "npy": (b"\x93NUMPY\x01\x00", "'f' cannot be read"),
    "ZIP": (b"PK\x03\x04 and nothing", "'f' cannot be read: .* NPZ"),
    "Parquet": (b"PAR1 and so on PAR1", "'f' cannot be read: .* Parquet"),
    "header only": (b"a,y\n", "'f' has 0 rows"),
    "one row": (b"a,y\n1,2\n", "'f' has 1 row. At least two are needed"),
    "twice": (b"a,a,y\n1,2,3\n4,5,6\n", "it has several columns 'a'"),
    "ragged": (b"a,y\n1,2\n1,2,3,4\n", r"Expected 2 fields in line 3, saw 4"),
    "always longer": (b"a,y\n1,2,3\n1,2,3\n", r"cannot be read: .*"),
    "no target": (b"a,z\n1,2\n2,3\n", "Name the column of 'f' to predict with --target: 'a', 'z'"),
    "target alone": (b"y\n1\n2\n", "no column besides the target that varies"),
    "constant": (b"a,y\n7,1\n7,2\n", "no column besides the target that varies"),
    "missing": (b"a,y\n1,1\n,2\n,3\n", "Column 'a' of 'f' has no usable value in row 2 and 1 more"),
    "missing word": (b"a,y\nu,1\n,2\nv,3\n", "no usable value in row 2: fill it in, let --impute"),
    "nothing there": (
        b"a,b,y\n,1,1\n,2,2\n",
        "Column 'a' .* in row 1 .* leave it out with --drop a",
    ),
    "infinite": (b"a,y\n1,1\ninf,2\n", "Column 'a' of 'f' has no usable value in row 2"),
    "huge": (b"a,y\n1,1\n1e200,2\n", "Column 'a' of 'f' has no usable value in row 2"),
    "target": (b"a,y\n1,1\n2,-inf\n", "'y' of .* in row 2: .* rows out with --drop-missing-target"),
    "dates": (
        b"d,y\n1/2/2024,1\n3/2/2024,2\n",
        "holds dates such as '1/2/2024': write them as 2024",
    ),
    "names": (NAMES, "'n' of 'f' has 50 different words, such as 'n0'. These are names"),
    "LIBSVM that ends": (b"1 1:2\n-1 2:3\n" * 30 + b"1 2:x\n", "'f' cannot be read: .* LIBSVM"),
    "LIBSVM with NaN": (b"1 1:2\n-1 1:nan\n", "'f' has values that are not finite"),
}


@looped("kind", WRONG)
def test_sentences(tmp_path, kind):
    content, sentence = WRONG[kind]
    with pytest.raises(InputError, match=sentence) as error:
        read(written(tmp_path / "f", content))
    assert str(error.value).endswith((".", "'"))


def test_more_sentences(tmp_path):
    written(tmp_path / "cut.csv.gz", gzip.compress(b"a,y\n" * 999)[:30])
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)), y=np.ones(4))
    np.savez(tmp_path / "o.npz", X=np.array([{}, 1], object), y=np.ones(2))
    for name in ("", "cut.csv.gz", "a.npz", "o.npz"):
        with pytest.raises(InputError, match=r"cannot be read: .*It should be a table"):
            read(tmp_path / name)
    path = written(tmp_path / "t.csv", PEOPLE)
    with pytest.raises(ValueError, match=r"column 'agee'. Did you mean 'age'") as error:
        read(path, "il", drop=["agee", "nothing like it"])
    assert "column 'il'. Did you mean 'ill'?" in str(error.value)
    assert "'nothing like it'. Choose one of: 'age', 'city', " in str(error.value)
