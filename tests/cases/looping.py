"""Many small cases in one test: a test of its own costs more than they do."""

import functools
import inspect


def looped(names, values):
    """As pytest.mark.parametrize, but in one test. A failure says in a note which case it was.

    The values may be a function of other arguments of the test.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    values = values if callable(values) else list(values)

    def decorate(test):
        signature = inspect.signature(test)
        left = signature.replace(
            parameters=[one for name, one in signature.parameters.items() if name not in names]
        )

        @functools.wraps(test)
        def every_case(*arguments, **options):
            given = left.bind(*arguments, **options).arguments
            found = (
                values(*(given[name] for name in inspect.signature(values).parameters))
                if callable(values)
                else values
            )
            assert found, "there are no cases"
            for value in found:
                case = dict(zip(names, value if len(names) > 1 else (value,), strict=True))
                try:
                    test(**given, **case)
                except BaseException as error:  # a failure of pytest.raises is no Exception
                    error.add_note(
                        "In the case "
                        + ", ".join(f"{name} = {one!r:.200}" for name, one in case.items())
                    )
                    raise

        del every_case.__wrapped__  # it would be asked for its arguments
        every_case.__signature__ = left
        return every_case

    return decorate
