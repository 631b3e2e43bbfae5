"""Machine code becomes something to call: compiled, cached, a gufunc with a fast path."""
