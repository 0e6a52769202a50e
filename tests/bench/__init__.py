"""What things cost, beside what else one could use: `python -m tests.bench`."""
