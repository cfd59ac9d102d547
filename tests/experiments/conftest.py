"""A browser for the tests of the report page, one for each process of the tests."""

import pytest

from browser import CHROMIUM, Browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
