"""The names that ``factorgraph_dyn`` offers: type checkers read them here, and ``__init__.py`` where each one lives."""

from factorgraph_dyn.compare import (
    OrderingCost as OrderingCost,
)
from factorgraph_dyn.compare import (
    compare_orderings as compare_orderings,
)
from factorgraph_dyn.compare import (
    ordering_cost as ordering_cost,
)
from factorgraph_dyn.compiler import (
    Kernel as Kernel,
)
from factorgraph_dyn.compiler import (
    compile as compile,
)
from factorgraph_dyn.equations import (
    Factor as Factor,
)
from factorgraph_dyn.equations import (
    Known as Known,
)
from factorgraph_dyn.equations import (
    LinearGraph as LinearGraph,
)
from factorgraph_dyn.equations import (
    Variable as Variable,
)
from factorgraph_dyn.equations import (
    dynamics_graph as dynamics_graph,
)
from factorgraph_dyn.equations import (
    evaluate_state as evaluate_state,
)
from factorgraph_dyn.equations import (
    velocity_graph as velocity_graph,
)
from factorgraph_dyn.errors import (
    ClosureError as ClosureError,
)
from factorgraph_dyn.errors import (
    CompileError as CompileError,
)
from factorgraph_dyn.errors import (
    FactorGraphDynError as FactorGraphDynError,
)
from factorgraph_dyn.errors import (
    InputError as InputError,
)
from factorgraph_dyn.errors import (
    ModelError as ModelError,
)
from factorgraph_dyn.errors import (
    NearSingularWarning as NearSingularWarning,
)
from factorgraph_dyn.errors import (
    OrderingError as OrderingError,
)
from factorgraph_dyn.errors import (
    ResidualError as ResidualError,
)
from factorgraph_dyn.errors import (
    SingularSystemError as SingularSystemError,
)
from factorgraph_dyn.model import (
    Coupling as Coupling,
)
from factorgraph_dyn.model import (
    Frame as Frame,
)
from factorgraph_dyn.model import (
    Joint as Joint,
)
from factorgraph_dyn.model import (
    Link as Link,
)
from factorgraph_dyn.model import (
    Loop as Loop,
)
from factorgraph_dyn.model import (
    Mechanism as Mechanism,
)
from factorgraph_dyn.model import (
    robots as robots,
)
from factorgraph_dyn.model.files.load import (
    load as load,
)
from factorgraph_dyn.model.files.load import (
    load_actuation as load_actuation,
)
from factorgraph_dyn.model.files.load import (
    loads as loads,
)
from factorgraph_dyn.ordering import (
    ORDERING_NAMES as ORDERING_NAMES,
)
from factorgraph_dyn.ordering import (
    Ordering as Ordering,
)
from factorgraph_dyn.ordering import (
    choose_ordering as choose_ordering,
)
from factorgraph_dyn.ordering import (
    eliminate_structure as eliminate_structure,
)
from factorgraph_dyn.search import (
    SearchResult as SearchResult,
)
from factorgraph_dyn.search import (
    search_orderings as search_orderings,
)
from factorgraph_dyn.show.draw import draw as draw
from factorgraph_dyn.show.report import write_report as write_report
from factorgraph_dyn.solve import (
    Constraints as Constraints,
)
from factorgraph_dyn.solve import (
    Contact as Contact,
)
from factorgraph_dyn.solve import (
    Diagnosis as Diagnosis,
)
from factorgraph_dyn.solve import (
    InputDynamics as InputDynamics,
)
from factorgraph_dyn.solve import (
    MinimumTorque as MinimumTorque,
)
from factorgraph_dyn.solve import (
    MinimumWrench as MinimumWrench,
)
from factorgraph_dyn.solve import (
    SoftFactors as SoftFactors,
)
from factorgraph_dyn.solve import (
    Solution as Solution,
)
from factorgraph_dyn.solve import (
    SpatialOperators as SpatialOperators,
)
from factorgraph_dyn.solve import (
    Trajectory as Trajectory,
)
from factorgraph_dyn.solve import (
    bias as bias,
)
from factorgraph_dyn.solve import (
    constraints as constraints,
)
from factorgraph_dyn.solve import (
    diagnose as diagnose,
)
from factorgraph_dyn.solve import (
    eliminate as eliminate,
)
from factorgraph_dyn.solve import (
    energy as energy,
)
from factorgraph_dyn.solve import (
    forward_dynamics as forward_dynamics,
)
from factorgraph_dyn.solve import (
    hybrid_dynamics as hybrid_dynamics,
)
from factorgraph_dyn.solve import (
    input_dynamics as input_dynamics,
)
from factorgraph_dyn.solve import (
    input_matrix as input_matrix,
)
from factorgraph_dyn.solve import (
    inverse_dynamics as inverse_dynamics,
)
from factorgraph_dyn.solve import (
    inverse_mass_matrix as inverse_mass_matrix,
)
from factorgraph_dyn.solve import (
    iwim as iwim,
)
from factorgraph_dyn.solve import (
    log_determinant as log_determinant,
)
from factorgraph_dyn.solve import (
    mass_matrix as mass_matrix,
)
from factorgraph_dyn.solve import (
    simulate as simulate,
)
from factorgraph_dyn.solve import (
    spatial_operators as spatial_operators,
)
from factorgraph_dyn.solve import (
    to_gtsam as to_gtsam,
)

__version__: str
