"""Agreement with other libraries and with the vectors that their own tests keep."""
