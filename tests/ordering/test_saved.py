"""Results files: read back, refused where they do not fit, never lost."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.ordering import saved
from factorgraph_dyn.search import search

RRR = fgd.robots.rrr()
ABA = tuple(fgd.compile(RRR, "forward", ordering="aba").ordering)


def entry(score=100.0, variables=ABA, **changes):
    fields = {"mechanism": "rrr", "fingerprint": RRR.fingerprint, "problem": "forward", "objective": "operations"}
    return saved.SavedOrdering(**(fields | changes), variables=variables, score=score, elites=((score, variables),))


def test_round_trip(tmp_path):
    path = tmp_path / "x.json"
    saved.write(path, entry())
    assert saved.read(path) == entry()
    assert fgd.compile(RRR, ordering=str(path)).ordering.variables == ABA
    assert list(tmp_path.iterdir()) == [path]


def test_search_is_the_best_saved():
    with pytest.raises(fgd.OrderingError, match="search_orderings"):
        fgd.compile(RRR, ordering="search")
    assert saved.keep_best(entry(100.0)) is not None
    assert saved.keep_best(entry(200.0, ABA[::-1])) is None
    assert fgd.compile(RRR, ordering="search").ordering.variables == ABA
    with pytest.raises(fgd.OrderingError, match="No search"):
        fgd.compile(RRR, "inverse", ordering="search")


@pytest.mark.slow
def test_a_search_goes_on_where_it_stopped(tmp_path):
    path = tmp_path / "rrr.json"
    first = fgd.search_orderings(RRR, budget=20, rounds=2, lanes=1, results=path)
    second = fgd.search_orderings(RRR, budget=20, rounds=1, lanes=1, results=path)
    assert second.history[0][2] <= first.score
    assert second.operations.total <= first.operations.total
    assert fgd.compile(RRR, ordering="search").operations == second.operations


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(search, "ROUND", 30)


def quick(**options):
    return fgd.search_orderings(
        RRR, **({"budget": 20, "rounds": 1, "lanes": 1, "executor": ThreadPoolExecutor(1)} | options)
    )


def test_a_search_goes_on_from_what_is_saved_and_says_so():
    first = quick()
    assert first.earlier is None
    assert not first.remark
    second = quick(seed=1)
    assert second.operations.total <= first.operations.total
    assert second.history[0][2] <= first.score
    count = first.operations.total
    kept, better = f"kept {count} of an earlier run.", f"instead of {count} of an earlier run."
    assert second.remark.endswith(kept if second.operations.total == count else better)
    assert quick(save=False).earlier is None


def test_a_search_that_starts_anew_keeps_a_better_one():
    known = entry(1.0, facts={"operations": 1})
    path = saved.keep_best(known)
    found = quick(resume=False)
    assert found.remark == f"kept 1 of an earlier run; this run found {found.operations.total}."
    assert saved.read(path) == known


def test_levels_are_told_as_people_count_them():
    first, second = (quick(objective="depth") for _ in range(2))
    assert second.remark == "kept 2 of an earlier run."
    assert "2 levels" in repr(first)


def test_an_outdated_score_gives_way():
    """A saved score may come from a compiler that counted otherwise."""
    saved.keep_best(entry(1.0))
    assert saved.keep_best(entry(90.0, ABA[::-1])) is None
    assert saved.keep_best(entry(90.0, ABA[::-1]), beaten=entry(1.0)) is not None
    found = quick()
    assert found.operations.total < 102
    assert fgd.compile(RRR, ordering="search").ordering.variables == found.variables


def test_other_mechanism_problem_version_or_content(tmp_path):
    path = tmp_path / "x.json"
    saved.write(path, entry())
    other = fgd.robots.pendulum(3)
    with pytest.raises(fgd.OrderingError, match="is for mechanism 'rrr'"):
        fgd.compile(other, ordering=str(path))
    with pytest.raises(fgd.OrderingError, match="is for mechanism 'rrr'"):
        fgd.search_orderings(other, budget=5, results=path)
    with pytest.raises(fgd.OrderingError, match="is for problem 'forward'"):
        fgd.search_orderings(RRR, "inverse", budget=5, results=path)
    saved.write(path, entry(variables=ABA[1:]))
    with pytest.raises(fgd.OrderingError, match="misses"):
        fgd.compile(RRR, ordering=str(path))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "broken"),
        (lambda text: "[]", "not a results file"),
        (lambda text: json.dumps(json.loads(text) | {"version": 99}), "version 99"),
        (lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "variables"}), "variables"),
    ],
)
def test_damaged_files(tmp_path, damage, message):
    path = tmp_path / "x.json"
    saved.write(path, entry())
    path.write_text(damage(path.read_text()))
    with pytest.raises(fgd.OrderingError, match=message):
        fgd.compile(RRR, ordering=str(path))
    with pytest.raises(fgd.OrderingError, match=message):
        fgd.search_orderings(RRR, budget=5, results=path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    saved.write(path, entry())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saved.os, "replace", full)
    with pytest.raises(fgd.InputError, match="No space left"):
        saved.write(path, entry(50.0))
    assert saved.read(path) == entry()
    assert list(tmp_path.iterdir()) == [path]


def test_missing_files():
    with pytest.raises(fgd.OrderingError, match="cannot be read"):
        fgd.compile(RRR, ordering="nowhere.json")
