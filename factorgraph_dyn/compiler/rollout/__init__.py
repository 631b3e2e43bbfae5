"""Time loops in machine code: an integrator around the forward kernel's arithmetic, states kept in SIMD lanes."""
