"""What users of MPSGraph's recurrent ops ran into elsewhere, each as a test of recurra (contract, section 7)."""
