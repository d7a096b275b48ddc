"""The documentation, read and run: its examples, its tables, its signatures."""
