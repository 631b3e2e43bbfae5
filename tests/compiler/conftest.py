"""Compiled kernels of the tests go to a folder of their own."""

import shutil

import pytest

from factorgraph_dyn.compiler.kernel.cache import ENVIRONMENT_VARIABLE


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ENVIRONMENT_VARIABLE, str(tmp_path_factory.mktemp("kernels")))
        yield


@pytest.fixture
def c_compiler():
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    return compiler
