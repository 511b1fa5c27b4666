"""Many processes, one budget: workers that each guard a line of their own, and a store where they meet now and then."""
