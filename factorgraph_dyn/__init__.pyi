"""The names that ``factorgraph_dyn`` offers: type checkers read them here, and ``__init__.py`` where each one lives."""

# ruff: noqa: I001 (one statement a room)

from factorgraph_dyn.compare import (
    OrderingCost as OrderingCost,
    compare_orderings as compare_orderings,
    ordering_cost as ordering_cost,
)
from factorgraph_dyn.compiler import (
    Kernel as Kernel,
    compile as compile,
)
from factorgraph_dyn.compiler.rollout.rollout import rollout as rollout
from factorgraph_dyn.compiler.step.compiled import (
    StepKernel as StepKernel,
    compile_step as compile_step,
)
from factorgraph_dyn.equations import (
    Factor as Factor,
    Known as Known,
    LinearGraph as LinearGraph,
    Variable as Variable,
    dynamics_graph as dynamics_graph,
    evaluate_state as evaluate_state,
    velocity_graph as velocity_graph,
)
from factorgraph_dyn.errors import (
    ClosureError as ClosureError,
    CompileError as CompileError,
    DoubtfulInputWarning as DoubtfulInputWarning,
    FactorGraphDynError as FactorGraphDynError,
    FrozenError as FrozenError,
    InputError as InputError,
    ModelError as ModelError,
    NearSingularWarning as NearSingularWarning,
    OrderingError as OrderingError,
    ResidualError as ResidualError,
    SingularSystemError as SingularSystemError,
    UnmodelledWarning as UnmodelledWarning,
)
from factorgraph_dyn.identification.base import base_parameters as base_parameters
from factorgraph_dyn.identification.excitation import (
    Excitation as Excitation,
    excitation as excitation,
)
from factorgraph_dyn.identification.identified import Identified as Identified
from factorgraph_dyn.identification.identify import identify as identify
from factorgraph_dyn.model import (
    Coupling as Coupling,
    Frame as Frame,
    Joint as Joint,
    Link as Link,
    Loop as Loop,
    Mechanism as Mechanism,
    Visual as Visual,
    robots as robots,
)
from factorgraph_dyn.model.files.load import (
    load as load,
    load_actuation as load_actuation,
    loads as loads,
)
from factorgraph_dyn.model.placements import (
    rotation as rotation,
    translation as translation,
)
from factorgraph_dyn.motion.questions import (
    center_of_mass as center_of_mass,
    difference as difference,
    energy as energy,
    integrate as integrate,
    jacobian as jacobian,
    momentum as momentum,
    pose as pose,
    poses as poses,
)
from factorgraph_dyn.ordering import (
    ORDERING_NAMES as ORDERING_NAMES,
    Ordering as Ordering,
    choose_ordering as choose_ordering,
    eliminate_structure as eliminate_structure,
)
from factorgraph_dyn.search import (
    SearchResult as SearchResult,
    search_orderings as search_orderings,
)
from factorgraph_dyn.show.draw import draw as draw
from factorgraph_dyn.show.report import write_report as write_report
from factorgraph_dyn.equations import sensors as sensors
from factorgraph_dyn.show.view.view import (
    View as View,
    view as view,
)
from factorgraph_dyn.equations.inputs import Contact as Contact
from factorgraph_dyn.solve.derivatives import (
    Derivatives as Derivatives,
    derivatives as derivatives,
)
from factorgraph_dyn.solve.dynamics import (
    forward_dynamics as forward_dynamics,
    hybrid_dynamics as hybrid_dynamics,
    inverse_dynamics as inverse_dynamics,
)
from factorgraph_dyn.solve.elimination import (
    eliminate as eliminate,
)
from factorgraph_dyn.solve.estimation.estimate import (
    Estimate as Estimate,
    estimate as estimate,
)
from factorgraph_dyn.solve.estimation.velocity import (
    VelocityEstimate as VelocityEstimate,
    estimate_velocity as estimate_velocity,
)
from factorgraph_dyn.solve.interchange import (
    gtsam_ordering as gtsam_ordering,
    to_gtsam as to_gtsam,
)
from factorgraph_dyn.solve.matrices.iwim import (
    InputDynamics as InputDynamics,
    input_dynamics as input_dynamics,
    input_matrix as input_matrix,
    iwim as iwim,
)
from factorgraph_dyn.solve.loops.diagnosis import (
    Diagnosis as Diagnosis,
    diagnose as diagnose,
)
from factorgraph_dyn.solve.matrices.mass_matrix import (
    bias as bias,
    inverse_mass_matrix as inverse_mass_matrix,
    log_determinant as log_determinant,
    mass_matrix as mass_matrix,
)
from factorgraph_dyn.solve.objectives import (
    MinimumTorque as MinimumTorque,
    MinimumWrench as MinimumWrench,
    SoftFactors as SoftFactors,
)
from factorgraph_dyn.solve.matrices.regressors import (
    energy_regressors as energy_regressors,
    regressor as regressor,
)
from factorgraph_dyn.solve.simulation import simulate as simulate
from factorgraph_dyn.solve.solution import Solution as Solution
from factorgraph_dyn.solve.trajectory import Trajectory as Trajectory
from factorgraph_dyn.textbook.operators import (
    SpatialOperators as SpatialOperators,
    spatial_operators as spatial_operators,
)
from factorgraph_dyn.textbook.projectors import (
    Constraints as Constraints,
    constraints as constraints,
)

__version__: str
