"""How things look at a terminal or in a pipe: tables, JSON, formats of records."""
