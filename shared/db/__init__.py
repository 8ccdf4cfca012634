"""The rows: tables, the two dialects, and one function for every move. The only room that writes SQL."""
