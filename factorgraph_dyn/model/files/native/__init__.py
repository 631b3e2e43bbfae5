"""The package's own format: a reader and a writer."""
