"""The pictures of the README, made again by `python scripts/pictures.py`.

five_bar.svg   a five-bar that draws a curve, with the torques of its two motors; moves by itself in a browser
speed.svg      the first table of docs/results.md as bars: nanoseconds a state, beside Pinocchio
"""

import re
from pathlib import Path

import numpy as np

import factorgraph_dyn as fgd

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "examples" / "pictures"
RESULTS = ROOT / "docs" / "results.md"
SECONDS, FRAMES = 4.0, 96
BLUE, ORANGE, PINK, GREY, INK = "#2b6cb0", "#d9822b", "#c2185b", "#8fa3b8", "#57606a"
FONT = f'font-family="system-ui, sans-serif" font-size="13" fill="{INK}"'


def main() -> None:
    """Write both pictures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "five_bar.svg").write_text(five_bar_picture(), encoding="utf-8")
    (FOLDER / "speed.svg").write_text(speed_picture(RESULTS.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"Wrote five_bar.svg and speed.svg to {FOLDER}.")


def periodic_motion(mechanism):
    """Coordinates, velocities and accelerations of a closed motion of the motors, shape (FRAMES, 4) each."""
    phase = 2 * np.pi * np.arange(FRAMES) / FRAMES
    q, now = [], mechanism.neutral()
    for angle in phase:
        now = now.copy()
        now[mechanism.q_slice("left_shoulder")] = -0.1 + 0.35 * np.sin(angle)
        now[mechanism.q_slice("right_shoulder")] = 0.1 + 0.35 * np.cos(angle)
        now = mechanism.close(now, hold=["left_shoulder", "right_shoulder"])
        q.append(now)
    rate = 1j * np.fft.fftfreq(FRAMES, 1 / FRAMES)[:, None] * 2 * np.pi / SECONDS
    rate[FRAMES // 2] = 0  # the highest frequency has no sign
    v, a = (np.fft.ifft(rate**k * np.fft.fft(np.array(q), axis=0), axis=0).real for k in (1, 2))
    return np.array(q), v, a


def five_bar_picture() -> str:
    """The moving five-bar."""
    mechanism = fgd.robots.five_bar()
    q, v, a = periodic_motion(mechanism)
    left, right = mechanism.v_slice("left_shoulder").start, mechanism.v_slice("right_shoulder").start
    torques = [fgd.inverse_dynamics(mechanism, *state).tau[[left, right]] for state in zip(q, v, a, strict=True)]
    (loop,) = mechanism.loops
    poses = fgd.poses(mechanism, q)
    children = {joint.name: joint.child for joint in mechanism.joints}
    places = {name: poses[link][:, :3, 3] for name, link in children.items()}
    places["tip"] = (poses[loop.predecessor] @ loop.predecessor_placement)[:, :3, 3]
    flat = _on_paper(places)
    rods = [
        ("left_shoulder", "left_elbow"),
        ("left_elbow", "tip"),
        ("right_shoulder", "right_elbow"),
        ("right_elbow", "tip"),
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in flat["tip"])
    parts = [f'<polygon points="{path}" fill="none" stroke="{PINK}" stroke-width="1.5" stroke-dasharray="4 4"/>']
    parts.append(_line(flat["left_shoulder"], flat["right_shoulder"], "#5d6b78"))
    parts += [_line(flat[start], flat[end], GREY) for start, end in rods]
    parts += [_dot(flat[name], 7, ORANGE if "shoulder" in name else GREY) for name in children]
    parts += [_dot(flat["tip"], 7, PINK), _bars(np.array(torques))]
    return _svg(420, 300, "A five-bar linkage whose tip follows a curve, and the torques of its two motors", parts)


def _on_paper(places):
    """Places in the x-z plane as points of the picture, shape (FRAMES, 2), upwards up."""
    points = {name: p[:, [0, 2]] for name, p in places.items()}
    every = np.concatenate(list(points.values()))
    low, high = every.min(axis=0), every.max(axis=0)
    scale = min(250 / (high - low)[0], 250 / (high - low)[1])
    return {name: np.array([25, 275]) + (p - low) * scale * np.array([1, -1]) for name, p in points.items()}


def _bars(tau):
    """Two bars that grow with the motors' torques."""
    scale, zero, parts = 90 / np.abs(tau).max(), 150.0, []
    for column, (name, x) in enumerate((("left", 312.0), ("right", 366.0))):
        top, height = zero - np.maximum(tau[:, column], 0) * scale, np.abs(tau[:, column]) * scale
        attributes, moving = _moving(("y", "height"), (top, height))
        parts.append(f'<rect x="{x}" width="24" {attributes} fill="{BLUE}">{moving}</rect>')
        parts.append(f'<text x="{x + 12}" y="262" text-anchor="middle" {FONT}>{name}</text>')
    parts.append(f'<line x1="298" y1="{zero}" x2="404" y2="{zero}" stroke="{INK}"/>')
    most = f"motor torques, up to {np.abs(tau).max():.1f} N m"
    parts.append(f'<text x="410" y="28" text-anchor="end" {FONT}>{most}</text>')
    return "".join(parts)


def _animated(attribute, values):
    words = ";".join(f"{x:.1f}" for x in (*values, values[0]))
    return f'<animate attributeName="{attribute}" dur="{SECONDS:g}s" repeatCount="indefinite" values="{words}"/>'


def _moving(attributes, columns):
    """Attributes at the first moment, and their animations where they change."""
    start = " ".join(f'{name}="{values[0]:.1f}"' for name, values in zip(attributes, columns, strict=True))
    pairs = zip(attributes, columns, strict=True)
    return start, "".join(_animated(name, values) for name, values in pairs if np.ptp(values) > 0.05)


def _line(start, end, colour):
    attributes, moving = _moving(("x1", "y1", "x2", "y2"), (*start.T, *end.T))
    return f'<line {attributes} stroke="{colour}" stroke-width="8" stroke-linecap="round">{moving}</line>'


def _dot(place, radius, colour):
    attributes, moving = _moving(("cx", "cy"), place.T)
    return f'<circle {attributes} r="{radius}" fill="{colour}" stroke="white" stroke-width="2">{moving}</circle>'


def speed_rows(page: str):
    """(robot, problem, ns a state, Pinocchio's, times faster) of what `scripts/benchmark.py kernels` found."""
    table = re.search(r"^\| robot \| problem .*?(?=\n\n)", page, re.DOTALL | re.MULTILINE)
    if table is None:
        raise SystemExit("docs/results.md has no table with the columns robot, problem, AVX2: ns a state, x Pinocchio.")
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]
    columns = [header.index(name) for name in ("AVX2: ns a state", "Pinocchio, ns a state", "x Pinocchio")]
    return [(row[0], row[1], *(float(row[k]) for k in columns)) for row in rows]


def speed_picture(page: str) -> str:
    """The bars of the first table of results, on a logarithmic axis."""
    rows = speed_rows(page)
    left, right, high = 178, 560, 34
    low, most = 10.0, 10 ** np.ceil(np.log10(max(row[3] for row in rows)))
    at = lambda ns: left + (right - left) * np.log10(ns / low) / np.log10(most / low)  # noqa: E731
    parts, bottom = [], 34 + high * len(rows)
    for ns in 10.0 ** np.arange(np.log10(low), np.log10(most) + 0.5):
        parts.append(
            f'<line x1="{at(ns):.1f}" y1="30" x2="{at(ns):.1f}" y2="{bottom}" stroke="{INK}" stroke-opacity="0.25"/>'
        )
        parts.append(f'<text x="{at(ns):.1f}" y="{bottom + 16}" text-anchor="middle" {FONT}>{ns:g} ns</text>')
    for k, (robot, problem, ours, theirs, times) in enumerate(rows):
        y = 36 + high * k
        name = f"{robot.partition(',')[0]}, {problem}"
        parts.append(f'<text x="{left - 8}" y="{y + 17}" text-anchor="end" {FONT}>{name}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{at(ours) - left:.1f}" height="11" fill="{BLUE}"/>')
        parts.append(f'<rect x="{left}" y="{y + 13}" width="{at(theirs) - left:.1f}" height="11" fill="{GREY}"/>')
        parts.append(f'<text x="{at(ours) + 6:.1f}" y="{y + 10}" {FONT}>{ours:g}, {times:g} times faster</text>')
        parts.append(f'<text x="{at(theirs) + 6:.1f}" y="{y + 23}" {FONT}>{theirs:g}</text>')
    for x, colour, words in (
        (left, BLUE, "factorgraph_dyn, AVX2"),
        (left + 180, GREY, "Pinocchio, C++ loop over the batch"),
    ):
        parts.append(f'<rect x="{x}" y="8" width="11" height="11" fill="{colour}"/>')
        parts.append(f'<text x="{x + 16}" y="18" {FONT}>{words}</text>')
    return _svg(640, bottom + 26, "Nanoseconds a state, on a logarithmic axis", parts)


def _svg(wide: int, high: int, title: str, parts) -> str:
    size = f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    return f"{head}<title>{title}</title>{''.join(parts)}</svg>\n"


if __name__ == "__main__":
    main()
