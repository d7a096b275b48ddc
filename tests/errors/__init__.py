"""What recurra says to a person who made a mistake: every message, word for word."""
