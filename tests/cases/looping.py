"""Many small cases in one test: a test of its own costs more than they do."""

import functools
import inspect


def looped(names, values):
    """As pytest.mark.parametrize, but in one test. A failure says in a note which case it was."""
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = list(values)
    assert values, "there are no cases"

    def decorate(test):
        signature = inspect.signature(test)

        @functools.wraps(test)
        def every_case(*arguments, **options):
            for value in values:
                case = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(*arguments, **options, **case)
                except BaseException as error:  # a failure of pytest.raises is no Exception
                    error.add_note("In the case " + ", ".join(f"{name} = {one!r:.200}" for name, one in case.items()))
                    raise

        del every_case.__wrapped__  # it would be asked for its arguments
        left = [one for name, one in signature.parameters.items() if name not in names]
        every_case.__signature__ = signature.replace(parameters=left)
        return every_case

    return decorate
