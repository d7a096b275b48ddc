"""An independent float64 form of the recurrent ops and of their gradients, and random cases to compare with it."""
