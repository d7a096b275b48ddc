"""The generic ops and the recurrent ones, against forms of their own."""
