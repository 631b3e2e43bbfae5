"""Assembly of a program for x86-64 processors with AVX2 or AVX-512."""
