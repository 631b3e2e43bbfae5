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

FOLDER = Path(fgd.__file__).parent / "show" / "view"
BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
)
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


def test_a_trajectory_has_times_and_torques(tmp_path):
    arm = fgd.robots.rrr()
    found = fgd.simulate(arm, np.zeros(3), np.zeros(3), lambda t, q, v: np.array([t, 0.0, 1.0]), 0.05, 0.01)
    file = tmp_path / "arm.html"
    data = data_of(fgd.view(arm, found, file))
    assert len(data["q"]) == len(data["times"]) == len(data["curves"]["values"]) == len(found.t)
    assert data["curves"]["values"][-1] == pytest.approx(found.tau[-1], rel=1e-5)
    assert file.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


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
        ({"wrenches": {"nowhere": np.zeros(6)}}, "no link or frame 'nowhere'"),
        ({"wrenches": {"link3": np.zeros(5)}}, "wrench on 'link3'"),
        ({"path": "page.txt"}, "must end in .html"),
    ],
)
def test_bad_input_is_refused_in_words(arguments, words):
    with pytest.raises(fgd.InputError, match=words):
        fgd.view(fgd.robots.rrr(), **arguments)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs a browser: chromium or google-chrome")
def test_the_script_places_links_and_keeps_loops_closed(tmp_path):
    cases = []
    for mechanism in [*map(mixed_tree, range(3)), *(fgd.robots.BUILT_IN[name]() for name in CLOSED)]:
        q, _ = mechanism.random_state(1)
        poses = link_poses(mechanism, q)
        rows = [poses[link.name].ravel().tolist() for link in mechanism.links]
        cases.append({"data": scene(mechanism), "q": q.tolist(), "poses": rows})
    found = run_in_browser(tmp_path, cases)
    assert all(error < 1e-12 and missed < 1e-12 for error, missed, _, _ in found)
    assert all(closed and left < 1e-6 for _, _, closed, left in found)


def run_in_browser(folder, cases):
    """For each case the errors of poses and closure, and whether a moved slider closes again, and how well."""
    script = "".join((FOLDER / name).read_text(encoding="utf-8") for name in ("three.min.js", "motion.js"))
    script += f"""
    const found = {json.dumps(cases)}.map(({{data, q, poses}}) => {{
      const rows = motion.linkPoses(data, q).map((T) => T.clone().transpose().elements);
      const error = Math.max(...rows.flatMap((row, k) => row.map((x, i) => Math.abs(x - poses[k][i]))));
      const missed = Math.hypot(0, ...motion.misfit(data, q));
      const place = data.joints.find((joint) => joint.screws.length && joint.actuated).q;
      q[place] += 0.05;
      const closed = motion.close(data, q, place);
      return [error, missed, closed, Math.hypot(0, ...motion.misfit(data, q))];
    }});
    document.body.textContent = JSON.stringify(found);
    """
    page = folder / "page.html"
    page.write_text(f"<html><body></body><script>{script}</script></html>", encoding="utf-8")
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--dump-dom", page.as_uri()]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    return json.loads(re.search(r"<body>(.*?)</body>", shown, re.S).group(1))
