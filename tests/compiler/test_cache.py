"""Compiled kernels on disk."""

import os
import subprocess
import sys

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler import compile as compile_function
from factorgraph_dyn.compiler.kernel import cache

compile_module = sys.modules["factorgraph_dyn.compiler.kernel.compile"]


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture
def traces(monkeypatch):
    """How often something was really compiled."""
    calls = []
    original = compile_module.trace

    def counted(*args):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(compile_module, "trace", counted)
    return calls


def compile(mechanism, problem, **words):
    """The kernel in an ordering that is named: what a choice among them keeps is tested with the choice."""
    return compile_function(mechanism, problem, **({"ordering": "rnea" if problem == "inverse" else "aba"} | words))


def answer(kernel):
    x = np.linspace(0.1, 0.7, 3)
    return kernel(x, x, x)


def files(folder):
    return sorted(folder.rglob("*.fgdk"))


def test_a_second_compile_reads_the_first(own_folder, traces):
    expected = answer(compile(fgd.robots.rrr(), "forward"))
    assert len(traces) == len(files(own_folder)) == 1
    kernel = compile(fgd.robots.rrr(), "forward")
    assert len(traces) == 1
    np.testing.assert_array_equal(answer(kernel), expected)
    assert kernel.operations.total > 0
    assert kernel.ordering.name == "aba"


def test_what_is_compiled_is_what_was_asked(own_folder, traces):
    from dataclasses import replace

    mechanism = fgd.robots.rrr()
    heavier = replace(mechanism, links=[replace(link, mass=link.mass * 2) for link in mechanism.links])
    for robot, problem, words in (
        (mechanism, "forward", {}),
        (mechanism, "inverse", {}),
        (heavier, "forward", {}),
        (mechanism, "forward", {"ordering": "crba"}),
        (mechanism, "forward", {"outputs": ["tau"]}),
        (mechanism, "hybrid", {"known_accelerations": mechanism.joint_names[:1]}),
        (replace(mechanism, gravity=(0, 0, -1.6)), "forward", {}),
    ):
        compile(robot, problem, **words)
    assert len(traces) == len(files(own_folder)) == 7


def test_one_file_in_two_folders_is_one_kernel(own_folder, traces, tmp_path):
    inertia = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/></inertial>"
    text = (
        f"<robot name='twice'><link name='ground'/><link name='arm'>{inertia}</link><made_up/>"
        "<joint name='hinge' type='continuous'><parent link='ground'/><child link='arm'/></joint></robot>"
    )
    loaded = []
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "arm.urdf"
        path.write_text(text)
        loaded.append(fgd.load(path))
    assert loaded[0].notes != loaded[1].notes  # they name the file
    for mechanism in loaded:
        compile(mechanism, "inverse")
    assert len(traces) == len(files(own_folder)) == 1


@pytest.mark.parametrize("damage", [b"", b"fgdk", None])
def test_damaged_files_are_rebuilt(own_folder, traces, damage):
    expected = answer(compile(fgd.robots.rrr(), "forward"))
    (file,) = files(own_folder)
    content = file.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    file.write_bytes(flipped if damage is None else damage)
    np.testing.assert_array_equal(answer(compile(fgd.robots.rrr(), "forward")), expected)
    assert len(traces) == 2
    assert file.read_bytes() == content
    file.write_bytes(content[:-10])
    np.testing.assert_array_equal(answer(compile(fgd.robots.rrr(), "forward")), expected)


def test_no_cache(tmp_path, monkeypatch, traces):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "off")
    assert cache.folder() is None
    for _ in range(2):
        compile(fgd.robots.rrr(), "inverse")
    assert len(traces) == 2
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(in_the_way))
    assert answer(compile(fgd.robots.rrr(), "inverse")).shape == (3,)


def test_folder_is_the_users(monkeypatch, tmp_path):
    monkeypatch.delenv(cache.ENVIRONMENT_VARIABLE)
    if sys.platform == "linux":
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert cache.folder() == tmp_path / "factorgraph_dyn"
    assert "factorgraph_dyn" in cache.folder().parts


def test_concurrent_processes(own_folder):
    program = (
        "import numpy as np, factorgraph_dyn as fgd\n"
        "from factorgraph_dyn.compiler import compile\n"
        "x = np.linspace(0.1, 0.7, 3)\n"
        "print(compile(fgd.robots.rrr(), 'forward', ordering='aba')(x, x, x).tobytes().hex())\n"
    )
    runs = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=dict(os.environ))
        for _ in range(3)
    ]
    answers = {run.communicate(timeout=120)[0] for run in runs}
    assert len(answers) == 1
    assert len(files(own_folder)) == 1
    assert not list(own_folder.rglob("*.part"))
    assert bytes.fromhex(answers.pop().decode().strip()) == answer(compile(fgd.robots.rrr(), "forward")).tobytes()


def test_orderings_that_differ_in_their_last_variables_are_two_kernels():
    """What people read of an ordering is shortened; what tells kernels apart is not."""
    arm = fgd.robots.rrr()
    usual = fgd.compile(arm, "forward", ordering="aba").ordering.variables
    other = (*usual[:3], *sorted(usual[3:]))
    for variables in (usual, other):
        assert fgd.compile(arm, "forward", ordering=fgd.Ordering("mine", variables)).ordering.variables == variables


FULL_MEMORY = """
import ctypes, mmap
import numpy as np
import factorgraph_dyn as fgd

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
no_reserve = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
reserve = lambda size: libc.mmap(None, size, 0, no_reserve, -1, 0)

fgd.compile(fgd.robots.pendulum(1), "inverse", ordering="rnea")
block = reserve(8 << 30)
while reserve(1 << 14) > block:  # above it there is room for nothing but small parts
    pass
humanoid = fgd.robots.humanoid()
q, v = humanoid.random_state(0)
print(np.isfinite(fgd.compile(humanoid, "forward", ordering="aba")(q, v, np.zeros(humanoid.nv))).all())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reserves memory as Linux does")
def test_code_is_linked_where_free_memory_lies_in_pieces_far_apart(own_folder):
    done = subprocess.run([sys.executable, "-c", FULL_MEMORY], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "True"


@pytest.fixture
def filled(own_folder, monkeypatch):
    """Eight entries of some 1000 bytes, the first used longest ago, beside files that are not the cache's."""
    monkeypatch.setattr(cache, "MOST_BYTES", 5500)
    names = [f"{k:x}{k:x}entry" for k in range(8)]
    for age, name in enumerate(names):
        assert cache.write(name, cache.Entry({}, bytes(1000)))
        path = cache._path(own_folder, name)
        os.utime(path, (1e9 + age, 1e9 + age))
    (own_folder / "00" / "notes.txt").write_text("of somebody")
    (own_folder / "notes.fgdk").write_bytes(bytes(9000))
    (own_folder / "00" / ".left.part").touch()
    os.utime(own_folder / "00" / ".left.part", (1e9, 1e9))
    return names


def look_again(folder):
    os.utime(folder / "looked_after", (1e9, 1e9))


def test_what_was_not_used_for_long_is_deleted_beyond_the_limit(own_folder, filled):
    assert cache.read(filled[0]) is not None  # used a moment ago
    look_again(own_folder)
    cache.write("ffnew", cache.Entry({}, bytes(1000)))
    kept = [name for name in (*filled, "ffnew") if cache._path(own_folder, name).exists()]
    assert kept == [filled[0], *filled[-2:], "ffnew"]
    assert sorted(path.name for path in own_folder.rglob("*") if "notes" in path.name) == ["notes.fgdk", "notes.txt"]
    assert not list(own_folder.rglob("*.part"))


def test_the_limit_is_looked_after_now_and_then(own_folder, filled):
    assert len(list(own_folder.glob("??/*.fgdk"))) == 8  # all written within a moment
    look_again(own_folder)
    cache.write(filled[0], cache.Entry({}, bytes(1000)))
    assert len(list(own_folder.glob("??/*.fgdk"))) == 4


def test_other_processes_may_delete_at_the_same_time(own_folder, filled, monkeypatch):
    def vanished(*_):
        raise FileNotFoundError

    monkeypatch.setattr(cache.Path, "unlink", vanished)
    look_again(own_folder)
    assert cache.write("ffnew", cache.Entry({}, bytes(1000)))
    assert cache.read("ffnew") is not None


# ---- what somebody else may have put there


def test_code_under_another_kernels_name_is_not_run(own_folder, traces):
    """Two arms of as many joints: code of one would give numbers of the other, and look right."""
    arm, other = fgd.robots.rrr(), fgd.robots.pendulum(3)
    expected = answer(compile(arm, "forward"))
    (own,) = files(own_folder)
    compile(other, "forward")
    (theirs,) = set(files(own_folder)) - {own}
    content = own.read_bytes()
    own.write_bytes(theirs.read_bytes())
    np.testing.assert_array_equal(answer(compile(arm, "forward")), expected)
    assert len(traces) == 3
    assert own.read_bytes() == content


needs_modes = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owner and mode as POSIX has them")


@needs_modes
@pytest.mark.parametrize("whose", ["writable", "writable inside", "another's"])
@pytest.mark.filterwarnings("default")
def test_a_folder_that_others_may_write_is_not_used(own_folder, traces, whose, monkeypatch):
    expected = answer(compile(fgd.robots.rrr(), "forward"))
    (file,) = files(own_folder)
    before = file.read_bytes(), os.stat(file).st_mtime_ns
    if whose == "another's":
        monkeypatch.setattr(os, "geteuid", lambda: own_folder.stat().st_uid + 1)
        own_folder.chmod(0o755)
        monkeypatch.setattr(cache, "_ROOT", -1)  # who may run these tests
    else:
        (own_folder if whose == "writable" else file.parent).chmod(0o775)
    words = "belongs to another user" if whose == "another's" else r"may be written by others \(mode 775\)"
    for _ in range(2):
        with pytest.warns(RuntimeWarning, match=f"{words}.*machine code.*chmod go-w.*{cache.ENVIRONMENT_VARIABLE}"):
            np.testing.assert_array_equal(answer(compile(fgd.robots.rrr(), "forward")), expected)
    assert len(traces) == 3
    assert (file.read_bytes(), os.stat(file).st_mtime_ns) == before
    assert files(own_folder) == [file]


@needs_modes
def test_the_warning_comes_once_a_process(own_folder):
    own_folder.mkdir()
    own_folder.chmod(0o777)
    program = (
        "import numpy as np, factorgraph_dyn as fgd\n"
        "for name in ('rrr', 'puma560'):\n"
        "    fgd.compile(fgd.robots.BUILT_IN[name](), 'inverse', ordering='rnea')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("may be written by others") == 1
    assert not list(own_folder.iterdir())


@needs_modes
def test_folders_are_made_for_this_user_alone(own_folder):
    before = os.umask(0)
    try:
        compile(fgd.robots.rrr(), "inverse")
    finally:
        os.umask(before)
    (file,) = files(own_folder)
    assert [path.stat().st_mode & 0o777 for path in (own_folder, file.parent)] == [0o700, 0o700]


@needs_modes
@pytest.mark.parametrize("kind", ["pipe", "endless"])
def test_only_regular_files_are_read(own_folder, traces, kind):
    expected = answer(compile(fgd.robots.rrr(), "forward"))
    (file,) = files(own_folder)
    file.unlink()
    os.mkfifo(file) if kind == "pipe" else file.symlink_to("/dev/zero")
    np.testing.assert_array_equal(answer(compile(fgd.robots.rrr(), "forward")), expected)
    assert len(traces) == 2
    assert file.is_file()
    assert not file.is_symlink()
    compile(fgd.robots.rrr(), "forward")
    assert len(traces) == 2
