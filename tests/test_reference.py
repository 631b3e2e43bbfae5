"""Docstrings of public names: every argument is told, and every name has an example that runs."""

import doctest
import inspect
import re

import numpy as np
import pytest

import factorgraph_dyn as fgd

NAMES = {name: getattr(fgd, name) for name in fgd.__all__ if callable(getattr(fgd, name))}
FAILURES = [name for name, one in NAMES.items() if inspect.isclass(one) and issubclass(one, Exception)]
FUNCTIONS = [name for name, one in NAMES.items() if inspect.isfunction(one)]


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(FAILURES)))
def test_public_names_have_an_example_that_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    text = inspect.getdoc(getattr(fgd, name))
    example = doctest.DocTestParser().get_doctest(text, {"np": np, "fgd": fgd}, name, None, 0)
    assert example.examples, f"fgd.{name} has no example"
    told: list[str] = []
    doctest.DocTestRunner().run(example, out=told.append)
    assert not told, "".join(told)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_public_functions_tell_their_arguments(name):
    function = getattr(fgd, name)
    _, _, arguments = inspect.getdoc(function).partition("Args:\n")
    for parameter in inspect.signature(function).parameters:
        assert re.search(rf"^    {parameter}: \S", arguments, re.MULTILINE), f"fgd.{name} does not tell {parameter}"


@pytest.mark.parametrize("name", FAILURES)
def test_errors_and_warnings_say_when(name):
    error = getattr(fgd, name)
    assert error.__doc__ != error.__mro__[1].__doc__
    assert len(error.__doc__) > 30
