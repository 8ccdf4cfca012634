"""How fast the engine is, how steady, and how it compares with a plain program that does the same job."""
