"""Other engines, one adapter each."""
