"""Whether a list of cases has all that is in the package: what is missing is said with the file to add it to."""


def assert_complete(names, cases, where):
    """Raise with a sentence unless there is a case for each name, and none for what is not there.

    `where` says what to add to which file, such as "EVERY in tests/solvers/test_describe.py".
    """
    names, cases = set(names), set(cases)
    if missing := sorted(names - cases):
        raise AssertionError(f"{', '.join(missing)}: there is no case. Add one to {where}.")
    if stale := sorted(cases - names):
        raise AssertionError(
            f"{', '.join(stale)}: the package has no such thing any more. Remove it from {where}."
        )
