"""Numbers and text as the report page writes them, and data as it embeds them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

FEW_DIGITS = dict.fromkeys(
    ("median", "low", "high", "step"), 3
)  # a line of a figure does not show more
FEW_DIGITS |= dict.fromkeys(("last", "best", "average"), 6)
EVERY_DIGIT = 17
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
UNSAFE = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
}  # in a script element: no tag begins or ends, no comment opens


def clean(value: Any) -> Any:
    """The same with plain numbers and text that can be written: what is not finite is None, half a character is a mark.

    >>> clean({"a": [float("nan"), 1, True], "b": "half \\ud800"})
    {'a': [None, 1, True], 'b': 'half \ufffd'}
    """
    if isinstance(value, Mapping):
        return {clean(str(key)): clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    if isinstance(value, str):
        return (
            value.encode("utf-16", "surrogatepass")
            .decode("utf-16", "replace")
            .replace("\0", "\ufffd")
        )  # HTML drops a NUL
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if hasattr(value, "tolist"):  # an array, or a number of NumPy's
        return clean(value.tolist())
    raise TypeError(
        f"A report shows numbers and text. Got {type(value).__name__} instead: turn it into one of these."
    )


def embedded(value: Any) -> str:
    """Clean data as JSON for a script element, in which no character has a meaning for HTML.

    >>> print(embedded({"<b>": 0.5, "low": [0.000123456, 0.0, 2.0, None]}))
    {"\\u003cb\\u003e":0.5,"low":[123e-6,0,2,null]}
    """
    text = _json(value, EVERY_DIGIT)
    for character, code in UNSAFE.items():
        text = text.replace(character, code)
    return text


def _json(value: Any, digits: int) -> str:
    if isinstance(value, dict):
        items = (
            f"{json.dumps(key)}:{_json(item, FEW_DIGITS.get(key, digits))}"
            for key, item in value.items()
        )
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_json(item, digits) for item in value) + "]"
    if isinstance(value, float) and digits < EVERY_DIGIT:
        return short(value, digits)
    return json.dumps(value, allow_nan=False)


def short(value: float, digits: int) -> str:
    """A number with so many significant digits, in as few characters as JSON allows.

    >>> [short(x, 3) for x in (0.0, 1.0, 0.5, 123456.0, 0.000123456, -2e-300, 12.34)]
    ['0', '1', '0.5', '123e3', '123e-6', '-2e-300', '12.3']
    """
    value = float(f"{value:.{digits - 1}e}")
    mantissa, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = fraction.rstrip("0")
    power_of_ten = int(exponent) - len(fraction)
    figures = (
        f"{whole}{fraction}".lstrip("0") if not whole.startswith("-") else f"-{whole[1:]}{fraction}"
    )
    scientific = (figures or "0") + (f"e{power_of_ten}" if power_of_ten else "")
    return min(f"{value:g}", scientific, key=len)


def number(value: float | None) -> str:
    """A number for people: three digits.

    >>> [number(x) for x in (None, 0, 0.0125, 2.0, 1234.5, 1.5e-7, 1e5)]
    ['–', '0', '0.0125', '2', '1230', '1.5e-7', '1e5']
    """
    if value is None:
        return "\N{EN DASH}"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{float(f'{value:.3g}'):.10g}"
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def power(text: str) -> str:
    """A level like "1e-2" as a power of ten.

    >>> power("1e-2"), power("0.5")
    ('10⁻²', '0.5')
    """
    mantissa, _, exponent = text.partition("e")
    return (
        f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
        if mantissa == "1" and exponent.lstrip("+-").isdigit()
        else text
    )


def moment(text: str) -> str:
    """A date, with the minute if it has one. Any other text stays as it is.

    >>> moment("2026-11-18T00:55:19+00:00"), moment("2026-11-18"), moment("today")
    ('2026-11-18 00:55 UTC', '2026-11-18', 'today')
    """
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::[\d.]+)?(Z|[+-]\d\d:\d\d)?", text)
    if not found:
        return text
    zone = {None: "", "Z": " UTC", "+00:00": " UTC"}.get(found[3], f" {found[3]}")
    return f"{found[1]} {found[2]}{zone}"
