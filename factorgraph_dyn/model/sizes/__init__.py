"""How large a mechanism and its parts are: its own units, lengths, and what each joint carries."""
