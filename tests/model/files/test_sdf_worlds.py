"""SDF worlds: several models, frames and joints between them, and what of them is not modelled."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.model.files.test_sdf import ARM, BODY, joint, link, model, named, place, world


def test_all_models_of_a_world_are_read():
    mechanism = fgd.loads(world("<gravity>0 0 -1</gravity>", named("r", ARM), named("s", ARM)))
    assert mechanism.link_names == ("world", "r::a", "r::b", "s::a", "s::b")
    assert mechanism.joint_names == ("r::floating_base", "r::j", "s::floating_base", "s::j")
    assert mechanism.gravity.tolist() == [0, 0, -1]
    alone = fgd.loads(world(named("r", ARM)))
    assert alone.link_names == ("world", "a", "b")


def test_models_are_placed_by_frames_and_models_of_the_world():
    frame = "<frame name='f'><pose>1 2 3 0 0 0</pose></frame>"
    one = named("r", "<static>1</static><pose relative_to='f'>0 0 1 0 0 0</pose>", link("a"))
    two = named("s", "<static>1</static><pose relative_to='r'>0 1 0 0 0 0</pose>", link("a"))
    np.testing.assert_allclose(place(fgd.loads(world(frame, one)), "a")[:3, 3], [1, 2, 4], atol=1e-12)
    mechanism = fgd.loads(world(frame, two, one))
    np.testing.assert_allclose(place(mechanism, "s::a")[:3, 3], [1, 3, 4], atol=1e-12)


def test_joints_of_the_world_join_models():
    tie = joint("tie", "fixed", "world", "r::a", "")
    between = joint("between", "revolute", "r::b", "s")
    mechanism = fgd.loads(world(named("r", ARM), named("s", ARM), between, version="1.11"))
    assert mechanism.joint_names == ("r::floating_base", "r::j", "s::j", "between")
    assert mechanism.joint_by_name["between"].child == "s::a"
    tied = fgd.loads(world(named("r", ARM), named("s", ARM), between, tie, version="1.11"))
    assert tied.joint_names == ("r::j", "s::j", "between")


def test_a_gearbox_of_the_world_couples_joints_of_its_models():
    gears = "<gearbox_ratio>4</gearbox_ratio><gearbox_reference_body>r::a</gearbox_reference_body>"
    axes = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 0 1</xyz></axis2>"
    robot = named("r", ARM, link("c"), joint("k", "revolute", "a", "c"))
    mechanism = fgd.loads(world(robot, named("s", ARM), joint("g", "gearbox", "r::b", "r::c", gears + axes)))
    (coupling,) = mechanism.couplings
    assert (coupling.joint, coupling.source, coupling.ratio) == ("r::k", "r::j", -4.0)


def test_gazebos_scenery_is_left_out_where_it_is_missing(tmp_path):
    includes = "".join(f"<include><uri>model://{name}</uri></include>" for name in ("sun", "ground_plane"))
    mechanism = fgd.loads(world(includes, named("r", ARM)))
    assert mechanism.link_names == ("world", "a", "b")
    assert sum("left out" in warning for warning in mechanism.warnings) == 2
    (tmp_path / "sun").mkdir()
    (tmp_path / "sun/model.sdf").write_text("<sdf version='1.6'><light name='sun' type='directional'/></sdf>")
    (tmp_path / "w.sdf").write_text(world(includes, named("r", ARM)))
    assert sum("left out" in warning for warning in fgd.load(tmp_path / "w.sdf").warnings) == 1


def marked(inside, *more):
    """A model whose first link holds something, on its second line."""
    return model(f"\n<link name='a'>{BODY}{inside}</link>", *more)


SUSPENSION = "<physics><ode><suspension><erp>.1</erp></suspension></ode></physics>"
UNMODELLED = {
    "gravity acts on the link": marked("<gravity>false</gravity>"),
    "kinematic": marked("<kinematic>1</kinematic>"),
    "there is no wind": marked("<enable_wind>true</enable_wind>"),
    "is not damped": marked("<velocity_decay><linear>0.0</linear><angular>0.01</angular></velocity_decay>"),
    "there is no fluid": marked("").replace("</mass>", "</mass><fluid_added_mass><xx>1</xx></fluid_added_mass>"),
    "plugins are not run": marked("", "<plugin name='lift' filename='lift.so'/>"),
    "their forces are missing": marked("<plugin name='lift' filename='lift.so'/>"),
    "forces are missing": marked("", link("b"), joint("j", "revolute", "a", "b", "<axis/><plugin name='p'/>")),
    "no wind": world("\n<wind><linear_velocity>0 1.5 0</linear_velocity></wind>", named("r", ARM)),
    "further ones are not read": marked("<inertial><mass>3</mass></inertial>"),
    "relative_to is not used": marked("").replace("</mass>", "</mass><pose relative_to='b'>1 0 0 0 0 0</pose>", 1),
    "suspension is not used": marked("", link("b"), joint("j", "revolute", "a", "b", "<axis/>" + SUSPENSION)),
    "saved state is not used": world("\n<state world_name='w'/>", named("r", ARM)),
    "<population> are not read": world("\n<population name='p'/>", named("r", ARM)),
    "only the first world": world(named("r", ARM)).replace("</sdf>", "\n<world name='v'/></sdf>"),
}  # fmt: skip


@pytest.mark.parametrize("warning", UNMODELLED)
def test_what_is_not_modelled_is_a_warning(warning):
    warnings = fgd.loads(UNMODELLED[warning], file="m.sdf").warnings
    assert any(found.startswith("m.sdf:2:") and warning in found for found in warnings)


def test_what_says_nothing_is_not_noted():
    quiet = "<gravity>1</gravity><kinematic>0</kinematic><velocity_decay><linear>0.00</linear></velocity_decay>"
    assert not fgd.loads(marked(quiet + "<enable_wind>0</enable_wind>")).warnings
    still = fgd.loads(world("<wind><linear_velocity>0 0.0 -0</linear_velocity></wind>", named("r", ARM)))
    assert still.warnings == fgd.loads(world(named("r", ARM))).warnings


def test_links_called_world_are_told_from_the_world_by_their_models():
    body = link("world") + link("b") + joint("j", "revolute", "world", "b")
    mechanism = fgd.loads(world(named("r", body), named("s", body)))
    assert mechanism.link_names == ("world", "r::world", "r::b", "s::world", "s::b")
    assert mechanism.joint_names == ("r::floating_base", "r::j", "s::floating_base", "s::j")
    assert fgd.loads(world(named("r", body))).link_names == ("world", "r::world", "b")


def physics(z, name="p", default=""):
    return f"<physics name='{name}' {default}><gravity>0 0 {z}</gravity></physics>"


GRAVITIES = {
    "in physics": ("1.5", physics(-1), -1),
    "in the first": ("1.4", physics(-1) + physics(-2, "q"), -1),
    "in the default": ("1.5", physics(-1) + physics(-2, "q", "default='1'"), -2),
    "in both": ("1.5", physics(-1) + "<gravity>0 0 -3</gravity>", -3),
    "in neither": ("1.5", "<physics name='p'/>", -9.8),
    "in physics, too late": ("1.6", physics(-1), -9.8),
}


@pytest.mark.parametrize("case", GRAVITIES)
def test_gravity_of_older_worlds_is_in_their_physics(case):
    version, parts, z = GRAVITIES[case]
    mechanism = fgd.loads(world(parts, named("r", ARM), version=version), file="m.sdf")
    assert mechanism.gravity.tolist() == [0, 0, z]
    noted = any(found.startswith("m.sdf:1: <gravity>: since version 1.6") for found in mechanism.warnings)
    assert noted == (version == "1.6")


def test_worlds_that_say_no_gravity_have_the_specifications_and_bare_models_everybodys():
    in_world, bare = fgd.loads(world(named("r", ARM))), fgd.loads(f"<sdf version='1.9'>{named('r', ARM)}</sdf>")
    assert in_world.gravity.tolist() == [0, 0, -9.8]
    assert bare.gravity.tolist() == fgd.robots.rrr().gravity.tolist() == [0, 0, -9.81]
