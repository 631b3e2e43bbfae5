"""A mechanism, a problem and an ordering become machine code: tape, elimination, LLVM, kernel."""

from factorgraph_dyn.compiler.kernel.compile import compile
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.compiler.program import Operations
from factorgraph_dyn.equations.problem import PROBLEM_NAMES

__all__ = ["PROBLEM_NAMES", "Kernel", "Operations", "compile"]
