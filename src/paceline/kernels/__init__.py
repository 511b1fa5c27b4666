"""What compiled loops are made of: random numbers, estimates, the budget, the best mix. They know no policy."""
