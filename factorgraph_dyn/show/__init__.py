"""What the other rooms make becomes tables and pictures."""
