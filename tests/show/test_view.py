"""Pages that show mechanisms: what they hold, and, where there is a browser, what their scripts make of it."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.show.view.scene import scene
from tests.helpers import mixed_tree
from tests.show.chromium import Browser, find_chromium
from tests.show.hostile import hostile_mechanism

FOLDER = Path(fgd.__file__).parent / "show" / "view"
NODE, BROWSER = shutil.which("node"), find_chromium()
CLOSED = ("four_bar", "five_bar", "delta", "stewart")


def data_of(view):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', view.page, re.S).group(1))


def pose_of(joint, q):
    """A joint's pose by its screws, as the page makes it."""
    T = np.reshape(joint["T"], (4, 4))
    own = q[joint["q"] : joint["q"] + joint["nq"]]
    for screw, x in zip(joint["screws"], own, strict=False):
        T = T @ spatial.exponential(np.array(screw) * x)
    if not joint["screws"] and joint["nq"]:
        place = own[:3] if joint["nq"] == 7 else np.zeros(3)
        T = T @ spatial.pose(spatial.rotation_of_quaternion(own[-4:]), place)
    return T


@pytest.mark.parametrize("seed", range(4))
def test_screws_place_links_of_all_joint_kinds(seed):
    mechanism = mixed_tree(seed)
    q, _ = mechanism.random_state(seed)
    data, expected = scene(mechanism), link_poses(mechanism, q)
    poses = [np.eye(4) for _ in data["links"]]
    for joint in data["joints"]:
        poses[joint["child"]] = poses[joint["parent"]] @ pose_of(joint, q)
    for link, T in zip(data["links"], poses, strict=True):
        np.testing.assert_allclose(T, expected[link["name"]], atol=1e-12)


def test_ellipsoids_have_the_links_inertia():
    """A solid ellipsoid's inertia about its centre is m (b^2 + c^2) / 5 about the axis a."""
    mechanism = fgd.robots.humanoid()
    for link, shown in zip(mechanism.links, scene(mechanism)["links"], strict=True):
        if shown["ellipsoid"] is None:
            continue
        squares, R = np.square(shown["ellipsoid"]["radii"]), np.reshape(shown["ellipsoid"]["R"], (3, 3))
        inertia = R @ np.diag(link.mass / 5 * (squares.sum() - squares)) @ R.T
        np.testing.assert_allclose(inertia, link.inertia, atol=1e-3 * np.abs(link.inertia).max())


def moving_arm(steps):
    arm = fgd.robots.rrr()
    torque = lambda t, q, v: np.array([t, 0.0, 1.0])  # noqa: E731
    return fgd.simulate(arm, np.zeros(3), np.zeros(3), torque, 0.01 * steps, 0.01)


def test_a_trajectory_has_times_torques_and_more(tmp_path):
    found = moving_arm(5)
    file = tmp_path / "arm.html"
    data = data_of(found.view(file))
    assert len(data["q"]) == len(data["times"]) == len(data["curves"][0]["values"]) == len(found.t)
    assert data["curves"][0]["title"].startswith("torques")
    assert data["curves"][0]["values"][-1] == pytest.approx(found.tau[-1], rel=1e-5)
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_long_motions_are_thinned_and_their_wrenches_with_them(monkeypatch):
    monkeypatch.setattr("factorgraph_dyn.show.view.view.MOST_TIMES", 4)
    found = moving_arm(9)
    data = data_of(found.view(wrenches={"link3": np.arange(60.0).reshape(10, 6)}))
    assert data["times"] == pytest.approx([0.0, 0.03, 0.06, 0.09])
    assert [row[0] for row in data["arrows"][0]["wrench"]] == [0.0, 18.0, 36.0, 54.0]


def test_wrenches_of_a_solution_are_drawn_where_joints_and_loops_are():
    """A loop's wrench is about its link's origin; the arrow is that about the loop, where a pin passes on no moment."""
    mechanism = fgd.robots.five_bar()
    q, _ = mechanism.random_state(1)
    solution = fgd.inverse_dynamics(mechanism, q, np.zeros(4), np.zeros(4))
    arrows = {arrow["name"]: arrow for arrow in data_of(fgd.view(mechanism, q, wrenches=solution.wrenches))["arrows"]}
    assert set(arrows) == {*mechanism.joint_names, *(loop.name for loop in mechanism.loops)}
    for loop in mechanism.loops:
        drawn, size = np.array(arrows[loop.name]["wrench"][0]), np.linalg.norm(solution.wrenches[loop.name])
        assert np.abs(drawn[:3] @ loop.axes.T).max() < 1e-8 * size


def test_pages_ask_no_network_and_run_no_other_script():
    page = fgd.view(fgd.robots.five_bar()).page
    without_library = page.replace((FOLDER / "three.min.js").read_text(encoding="utf-8"), "")
    assert "default-src 'none'" in page
    assert not re.search(r"(src|href)\s*=|https?://|@import|\bfetch\(", without_library)


def test_names_are_no_code():
    link = fgd.Link("</script><script>alert(1)</script>", 1.0, (0, 0, 0.1), np.eye(3))
    mechanism = fgd.Mechanism("evil", (fgd.Link("base"), link), (fgd.Joint("j", "revolute", "base", link.name),))
    assert "<script>alert" not in fgd.view(mechanism).page
    assert data_of(fgd.view(mechanism))["links"][1]["name"] == link.name


def test_notebooks_show_the_page():
    shown = fgd.view(fgd.robots.pendulum(2))
    assert shown._repr_html_().startswith("<iframe srcdoc=")
    assert len(repr(shown)) < 100


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"q_or_trajectory": [0.0, 0.0]}, "shape"),
        ({"wrenches": {"nowhere": np.zeros(6)}}, "'nowhere' is not in mechanism"),
        ({"wrenches": {"link3": np.zeros(6)}, "axes": "body"}, "axes"),
        ({"q_or_trajectory": np.zeros((0, 3))}, "no configuration"),
        ({"wrenches": {"link3": np.zeros(5)}}, "wrench on 'link3'"),
        ({"path": "page.txt"}, "must end in .html"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, words):
    with pytest.raises(fgd.InputError, match=words):
        fgd.view(fgd.robots.rrr(), **arguments)


@pytest.mark.skipif(NODE is None, reason="needs Node.js")
def test_the_script_places_links_and_keeps_loops_closed(tmp_path):
    cases = []
    for mechanism in [*map(mixed_tree, range(3)), *(fgd.robots.BUILT_IN[name]() for name in CLOSED)]:
        q, _ = mechanism.random_state(1)
        poses = fgd.poses(mechanism, q)
        rows = [poses[link.name].ravel().tolist() for link in mechanism.links]
        cases.append({"data": scene(mechanism), "q": q.tolist(), "poses": rows})
    for case, found in zip(cases, run_in_node(tmp_path, cases), strict=True):
        assert found["pose"] < 1e-12
        assert found["missed"] < 1e-12
        assert len(found["slides"]) == sum(joint["nq"] - (joint["nq"] in (4, 7)) for joint in case["data"]["joints"])
        for is_motor, arrived, got, left in found["slides"]:
            assert arrived or not is_motor  # a delta's platform cannot turn
            assert got == pytest.approx(0.05 if arrived else 0.0)
            assert left < 1e-6


def run_in_node(folder, cases):
    """For each case the errors of poses and closure, and what becomes of every slider that is moved a little."""
    script = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("three.min.js", "motion.js"))
    script += f"""
    const found = {json.dumps(cases)}.map(({{data, q, poses}}) => {{
      const rows = motion.linkPoses(data, q).map((T) => T.clone().transpose().elements);
      const pose = Math.max(...rows.flatMap((row, k) => row.map((x, i) => Math.abs(x - poses[k][i]))));
      const missed = Math.hypot(0, ...motion.misfit(data, q));
      const handles = data.joints.flatMap((joint) => motion.handles(joint).map((handle) => [joint, handle]));
      const slides = handles.map(([joint, handle]) => {{
        const moved = q.slice(), step = handle.turns ? 0.05 : 0.05 * data.size, start = handle.get(q);
        const arrived = motion.slide(data, moved, handle, start + step);
        const left = Math.hypot(0, ...motion.misfit(data, moved));
        return [joint.actuated, arrived, 0.05 * (handle.get(moved) - start) / step, left];
      }});
      return {{pose, missed, slides}};
    }});
    console.log(JSON.stringify(found));
    """
    file = folder / "script.js"
    file.write_text(script, encoding="utf-8")
    done = subprocess.run([NODE, str(file)], capture_output=True, text=True, timeout=120, check=True)
    return json.loads(done.stdout)


@pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium or google-chrome")
def test_pages_draw_slide_and_play_in_a_browser(tmp_path):
    motion, hostile = tmp_path / "motion.html", tmp_path / "hostile.html"
    moving_arm(5).view(motion)
    fgd.view(hostile_mechanism(), None, hostile)
    slide = "const i = document.querySelector('.slider input'); i.value = 0.5; i.dispatchEvent(new Event('input'));"
    with Browser(BROWSER) as browser:
        for width in (390, 1100):
            browser.open(motion, width=width, height=700)
            if browser.run("!document.createElement('canvas').getContext('webgl2')"):
                pytest.skip("this browser draws nothing in three dimensions")
            assert browser.run("document.documentElement.scrollWidth") <= width
            browser.run(f"{{ {slide} }}")
            assert browser.run("document.querySelector('.slider output').textContent") == "28.6°"
            browser.click("#play")
            assert browser.run("document.getElementById('play').ariaLabel") in ("Pause", "Play")
        browser.open(hostile)
        assert browser.run("document.title") == "<b>arm</b> & $co"
        assert browser.run("document.querySelectorAll('img, b').length") == 0
        assert not [found for found in browser.complaints() if "GPU" not in found and "WebGL" not in found]
