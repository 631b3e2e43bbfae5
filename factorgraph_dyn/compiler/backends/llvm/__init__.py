"""Machine code by LLVM, over SIMD vectors of states."""
