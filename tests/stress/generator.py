"""Random mechanisms, as varied as files and users make them: recipes from a random generator alone."""

from __future__ import annotations

import numpy as np

from tests.stress.kinematics import SIZES, TURNS
from tests.stress.linkages import FAMILIES
from tests.stress.recipe import Recipe

KINDS = tuple(SIZES)
TREE_WEIGHTS = {"fixed": 1, "revolute": 6, "continuous": 2, "prismatic": 2, "helical": 1}
TREE_WEIGHTS |= {"universal": 1, "spherical": 1, "planar": 1, "floating": 0.5}
ROUNDED = (0.0, 1.5707, 1.5708, -1.5708, 3.1416, 3.1415926, -3.14, 0.7854, np.pi / 2, np.pi, -np.pi / 2, 0.5236)
TILTS = (1e-4, 1e-8, -1e-4, 2e-6)
TINY = 2.0**-61  # of an inertia: what sums of inertias leave as products


def random_recipe(rng: np.random.Generator) -> Recipe:
    """A recipe of one of several families, in random units."""
    family = rng.choice(["tree", "spatial", "planar", "coupled", "linkage"], p=[0.4, 0.22, 0.26, 0.08, 0.04])
    recipe = {"planar": planar, "linkage": linkage}.get(str(family), tree)(rng)
    if family == "spatial":
        add_loops(rng, recipe)
    if family == "coupled" or (family not in ("tree", "linkage") and rng.random() < 0.12):
        add_couplings(rng, recipe)
    if rng.random() < 0.4:
        add_effects(rng, recipe)
    if rng.random() < 0.15:
        spread_masses(rng, recipe)
    if rng.random() < 0.25:
        add_wrenches(rng, recipe)
    if rng.random() < 0.5:
        rescale(recipe, *random_units(rng))
    return recipe


def number_of_joints(rng) -> int:
    return 20 if rng.random() < 0.02 else int(rng.integers(1, 9))


def tree(rng) -> Recipe:
    n = number_of_joints(rng)
    recipe = Recipe(gravity=gravity(rng))
    recipe.links["base"] = {}
    branching = rng.uniform(1, 4)
    style = rng.choice(["neat", "rounded", "random"])
    only = rng.random() < 0.3  # one kind of joint mostly, as arms have
    names = ["base"]
    weights = np.array([TREE_WEIGHTS[kind] for kind in KINDS], dtype=float)
    for i in range(1, n + 1):
        parent = names[max(0, len(names) - 1 - int(rng.integers(0, int(branching) + 1)))] if i > 1 else "base"
        kind = "revolute" if only and rng.random() < 0.9 else str(rng.choice(KINDS, p=weights / weights.sum()))
        add_joint(rng, recipe, i, kind, parent, placement(rng, style), style)
        names.append(f"link{i}")
    if not sum(SIZES[joint["kind"]][1] for joint in recipe.joints.values()):
        last = recipe.joints[f"joint{n}"]
        fresh = Recipe(links=dict(recipe.links))
        add_joint(rng, fresh, n, "revolute", last["parent"], last["placement"], style)
        recipe.joints[f"joint{n}"] = fresh.joints[f"joint{n}"]
    states(rng, recipe)
    return recipe


def add_joint(rng, recipe, i, kind, parent, place, style, joint_axis=None) -> None:
    recipe.links[f"link{i}"] = link(rng)
    nq, nv = SIZES[kind]
    recipe.joints[f"joint{i}"] = {
        "kind": kind,
        "parent": parent,
        "child": f"link{i}",
        "placement": place,
        "axis": axes(rng, kind, style) if joint_axis is None else joint_axis,
        "pitch": float(rng.choice([0.1, 0.0159, rng.normal() * 0.3])) if kind == "helical" else 0.0,
        "actuated": bool(rng.random() < 0.8),
        "q": np.zeros(nq),
        "v": np.zeros(nv),
        "a": np.zeros(nv),
        "tau": np.zeros(nv),
    }


def states(rng, recipe) -> None:
    """Random q, v, tau of all joints and ways to further states."""
    at = rng.choice(["random", "zero", "quarters"], p=[0.75, 0.1, 0.15])
    rest = rng.random() < 0.1
    recipe.further = int(rng.integers(1, 4))
    for joint in recipe.joints.values():
        nv = SIZES[joint["kind"]][1]
        joint["q"] = coordinates(rng, joint["kind"], str(at))
        joint["v"] = np.zeros(nv) if rest else rng.normal(size=nv)
        joint["tau"] = rng.normal(size=nv)
        joint["a"] = rng.normal(size=nv)
        joint["steps"] = [rng.normal(size=nv) * 0.15 for _ in range(recipe.further)]


def coordinates(rng, kind, at) -> np.ndarray:
    nq = SIZES[kind][0]
    q = rng.uniform(-1, 1, nq)
    if kind in ("spherical", "floating"):
        q[-4:] = rng.normal(size=4) if at == "random" else np.array([0.0, 0.0, 0.0, 1.0])
        q[-4:] /= np.linalg.norm(q[-4:])
    elif kind != "prismatic":
        turning = np.array(TURNS[kind], dtype=bool)
        q[turning] *= np.pi
    if at == "zero":
        q[: nq - 4 if kind in ("spherical", "floating") else nq] = 0.0
    if at == "quarters" and kind in ("revolute", "continuous", "universal", "helical"):
        q = rng.integers(-2, 3, nq) * np.pi / 2
    return q


def link(rng) -> dict:
    if rng.random() < 0.035:
        return {"mass": 0.0, "com": np.zeros(3), "inertia": np.zeros((3, 3))}
    mass = float(rng.uniform(0.2, 3.0))
    com = rng.uniform(-0.3, 0.3, 3)
    where = rng.random()
    if where < 0.2:
        com = np.zeros(3)
    elif where < 0.5:
        com = com * (np.arange(3) == rng.integers(3))
    a, b, c = rng.uniform(0.002, 0.05, 3) * mass
    inertia = np.diag([b + c, a + c, a + b])
    style = rng.choice(["full", "diagonal", "tiny", "left", "rod"], p=[0.37, 0.31, 0.17, 0.11, 0.04])
    if style == "full":
        R = rotation(rng)
        inertia = R @ inertia @ R.T
        inertia = (inertia + inertia.T) / 2
    elif style in ("tiny", "left"):
        for i, j in ((0, 1), (0, 2), (1, 2)):
            if rng.random() < 0.6:
                left = TINY * float(rng.choice([1.0, -1.0, 0.5, 4.0]))
                if style == "left":
                    x = inertia[i, i]
                    left = 0.1 * x + 0.2 * x - 0.3 * x  # zero but for rounding
                inertia[i, j] = inertia[j, i] = left
    elif style == "rod":
        inertia = np.diag([a, a, 0.0])  # a line of points, as simple models have
        com = com * (np.arange(3) == 2)
    return {"mass": mass, "com": com, "inertia": inertia}


def gravity(rng) -> tuple:
    how = rng.random()
    if how < 0.6:
        return (0.0, 0.0, -9.81)
    return (0.0, 0.0, 0.0) if how < 0.7 else tuple(float(x) for x in rng.normal(size=3) * 5)


def rotation(rng) -> np.ndarray:
    x, y, z, w = (q := rng.normal(size=4)) / np.linalg.norm(q)
    return orthogonal(
        np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ]
        )
    )


def orthogonal(R) -> np.ndarray:
    U, _, V = np.linalg.svd(R)
    return U @ V


def about(axis: int, angle: float) -> np.ndarray:
    R, i, j = np.eye(3), (axis + 1) % 3, (axis + 2) % 3
    R[i, i] = R[j, j] = np.cos(angle)
    R[i, j], R[j, i] = -np.sin(angle), np.sin(angle)
    return R


def placement(rng, style) -> np.ndarray:
    T = np.eye(4)
    where = rng.random()
    if where < 0.85:
        T[:3, 3] = rng.uniform(-0.6, 0.6, 3)
        if style != "random":
            T[:3, 3] = np.round(T[:3, 3] * rng.integers(0, 2, 3), 3)
    how = rng.random()
    if style == "rounded" or how < 0.15:
        roll, pitch, yaw = rng.choice(ROUNDED, 3)
        T[:3, :3] = about(2, yaw) @ about(1, pitch) @ about(0, roll)
        if rng.random() < 0.2:  # as files round whole matrices
            T[:3, :3] = orthogonal(np.round(T[:3, :3], 4))
    elif style == "random":
        T[:3, :3] = rotation(rng)
    elif how < 0.5:
        T[:3, :3] = np.round(about(int(rng.integers(3)), np.pi / 2 * rng.integers(4)))
    if rng.random() < 0.06:
        T[:3, :3] = T[:3, :3] @ about(int(rng.integers(2)), float(rng.choice(TILTS)))
    return T


def axes(rng, kind, style) -> np.ndarray:
    first = axis(rng, style)
    if kind != "universal" or rng.random() < 0.3:
        return first
    second = np.cross(first, rng.normal(size=3))
    if rng.random() < 0.3:
        second = second + 0.4 * np.linalg.norm(second) * first  # crossing, but not at a right angle
    return np.stack([first, second / np.linalg.norm(second)])


def axis(rng, style) -> np.ndarray:
    how = rng.random()
    if style == "random" and how < 0.6:
        return rng.normal(size=3)
    unit = np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
    if how < 0.75:
        return np.array([0.0, 0.0, 1.0]) if rng.random() < 0.5 else unit
    if how < 0.9:
        return unit + float(rng.choice(TILTS)) * np.eye(3)[rng.integers(3)]
    return np.array([[0.7071, 0.7071, 0.0], [0.0, 0.7071, -0.7071], [0.8660254, 0.0, 0.5]])[rng.integers(3)]


# ---- closed mechanisms


def planar(rng) -> Recipe:
    """Bodies with full inertias that move in the x-y plane, closed by joints that repeat constraints."""
    recipe = Recipe(gravity=gravity(rng))
    recipe.links["base"] = {}
    loops = int(rng.choice([1, 1, 1, 2, 3]))
    n = 2 * loops + int(rng.integers(1, 3))
    style = "random" if rng.random() < 0.7 else "neat"
    for i in range(1, n + 1):
        first = max(0, i - 3)
        parent = int(rng.integers(first, i))
        kind = "prismatic" if rng.random() < 0.15 else "revolute" if rng.random() < 0.93 else "planar"
        place = np.eye(4)
        place[:2, 3] = rng.uniform(-0.6, 0.6, 2) if style == "random" else np.round(rng.uniform(-0.6, 0.6, 2), 1)
        turn = rng.uniform(-np.pi, np.pi) if style == "random" else float(rng.choice(ROUNDED))
        place[:3, :3] = about(2, turn)
        direction = in_plane(rng) if kind == "prismatic" else np.array([0.0, 0.0, 1.0])
        add_joint(rng, recipe, i, kind, f"link{parent}" if parent else "base", place, style, direction)
    states(rng, recipe)
    for i in range(1, loops + 1):
        kind = str(rng.choice(["revolute", "prismatic", "planar", "fixed"], p=[0.8, 0.12, 0.04, 0.04]))
        loop = ends(rng, recipe)
        place = np.eye(4)
        place[:2, 3] = rng.uniform(-0.5, 0.5, 2)
        direction = in_plane(rng) if kind == "prismatic" else np.array([0.0, 0.0, 1.0])
        recipe.loops[f"loop{i}"] = {**loop, "kind": kind, "placement": place, "axis": direction, "pitch": 0.0}
    if rng.random() < 0.2:  # the plane lies anywhere
        turn = np.eye(4)
        turn[:3, :3] = rotation(rng)
        for part in (*recipe.joints.values(), *recipe.loops.values()):
            if part.get("parent", part.get("predecessor")) == "base":
                part["placement"] = turn @ part["placement"]
    return recipe


def linkage(rng) -> Recipe:
    """A linkage that moves because its lengths agree, standing anywhere."""
    made = FAMILIES[rng.integers(len(FAMILIES))](rng)
    recipe = Recipe(gravity=gravity(rng))
    recipe.links["base"] = {}
    stand = np.eye(4)
    if rng.random() < 0.4:
        stand[:3, :3] = rotation(rng)
    names = ["base", *(f"link{i}" for i in range(1, len(made.joints) + 1))]
    for i, (parent, kind, joint_axis, place, _) in enumerate(made.joints, 1):
        add_joint(rng, recipe, i, kind, names[parent], place if parent else stand @ place, "neat", joint_axis)
    states(rng, recipe)
    for i, (*_, q) in enumerate(made.joints, 1):
        recipe.joints[f"joint{i}"]["q"] = np.array([q])
    for i, (kind, direction, predecessor, place, successor) in enumerate(made.loops, 1):
        ends = {"predecessor": names[predecessor], "successor": names[successor]}
        place = place if predecessor else stand @ place
        recipe.loops[f"loop{i}"] = {**ends, "kind": kind, "placement": place, "axis": direction, "pitch": 0.0}
    return recipe


def in_plane(rng) -> np.ndarray:
    angle = rng.uniform(-np.pi, np.pi)
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def ends(rng, recipe) -> dict:
    names = list(recipe.links)
    one, two = rng.choice(len(names), 2, replace=False)
    return {"predecessor": names[one], "successor": names[two]}


def add_loops(rng, recipe) -> None:
    """Joints of any kind that leave some freedom, between links that have enough joints between them."""
    budget = sum(SIZES[joint["kind"]][1] for joint in recipe.joints.values()) - 1
    for i in range(1, int(rng.choice([1, 1, 1, 2, 3])) + 1):
        if len(recipe.links) < 3:
            return
        fitting = [kind for kind in KINDS if 6 - SIZES[kind][1] <= budget]
        if not fitting:
            return
        kind = str(rng.choice(fitting))
        budget -= 6 - SIZES[kind][1]
        recipe.loops[f"loop{i}"] = {
            **ends(rng, recipe),
            "kind": kind,
            "placement": placement(rng, "random"),
            "axis": axes(rng, kind, "random"),
            "pitch": float(rng.normal() * 0.2) if kind == "helical" else 0.0,
        }


def add_couplings(rng, recipe) -> None:
    single = [name for name, joint in recipe.joints.items() if SIZES[joint["kind"]][1] == 1]
    rng.shuffle(single)
    count = min(len(single) - 1, int(rng.choice([1, 1, 2, 3])))
    for i in range(count):
        ratio = float(rng.choice([-1.0, 1.0, 0.5, 0.1, 9.0, -120.0, round(float(rng.normal()), 3) or 0.3]))
        source = single[i] if rng.random() < 0.5 else single[0]
        recipe.couplings[f"gear{i + 1}"] = {"joint": single[i + 1], "source": source, "ratio": ratio}


# ---- what acts besides


def add_effects(rng, recipe) -> None:
    for joint in recipe.joints.values():
        nq, nv = SIZES[joint["kind"]]
        for effect in ("armature", "damping", "friction", "stiffness"):
            if rng.random() < 0.4 and (effect != "stiffness" or nq == nv):
                joint[effect] = rng.uniform(0.01, 0.5, nv)
        if "stiffness" in joint:
            joint["rest"] = rng.normal(size=nv)


def spread_masses(rng, recipe) -> None:
    for body in recipe.links.values():
        if body:
            factor = 10 ** rng.uniform(-2, 2)
            body["mass"], body["inertia"] = body["mass"] * factor, body["inertia"] * factor


def add_wrenches(rng, recipe) -> None:
    moving = [name for name in recipe.links if name != "base"]
    for name in rng.choice(moving, min(len(moving), int(rng.integers(1, 3))), replace=False):
        recipe.wrenches[str(name)] = rng.normal(size=6)


def random_units(rng) -> tuple[float, float, float]:
    """Mass, length and time: some usual, some anywhere in twelve decades."""
    if rng.random() < 0.3:
        return [(1e-3, 1e-3, 1.0), (1e3, 1e3, 1.0), (1.0, 1e-3, 1.0), (1e-3, 1.0, 1.0)][rng.integers(4)]
    mass, length, time = 10 ** rng.uniform(-6, 6, 3)
    if rng.random() < 0.5:
        time = 1.0
    return float(mass), float(length), float(time)


def rescale(recipe, mass, length, time) -> None:
    """The same mechanism with its masses, lengths and times multiplied."""
    work = mass * length**2 / time**2
    for body in recipe.links.values():
        if body:
            body["mass"] *= mass
            body["com"] = body["com"] * length
            body["inertia"] = body["inertia"] * (mass * length**2)
    recipe.gravity = tuple(g * length / time**2 for g in recipe.gravity)
    for part in (*recipe.joints.values(), *recipe.loops.values()):
        part["placement"] = part["placement"].copy()
        part["placement"][:3, 3] *= length
        part["pitch"] *= length
    for joint in recipe.joints.values():
        unit = np.where(np.array(TURNS[joint["kind"]], dtype=bool), 1.0, length)
        joint["q"] = joint["q"] * _coordinate_units(joint["kind"], length)
        joint["v"] = joint["v"] * unit / time
        joint["a"] = joint["a"] * unit / time**2
        joint["tau"] = joint["tau"] * work / unit
        joint["steps"] = [step * unit for step in joint["steps"]]
        for effect, power in (("armature", 2), ("damping", 1), ("stiffness", 0)):
            if effect in joint:
                joint[effect] = joint[effect] * work * time**power / unit**2
        if "friction" in joint:
            joint["friction"] = joint["friction"] * work / unit
        if "rest" in joint:
            joint["rest"] = joint["rest"] * unit
    for coupling in recipe.couplings.values():
        one, two = (TURNS[recipe.joints[coupling[end]]["kind"]][0] for end in ("joint", "source"))
        coupling["ratio"] *= (1.0 if one else length) / (1.0 if two else length)
    for name, wrench in recipe.wrenches.items():
        recipe.wrenches[name] = wrench * work / np.array([1.0, 1.0, 1.0, *[length] * 3])


def _coordinate_units(kind, length) -> np.ndarray:
    if kind == "floating":
        return np.array([length] * 3 + [1.0] * 4)
    if kind == "spherical":
        return np.ones(4)
    return np.where(np.array(TURNS[kind], dtype=bool), 1.0, length)
