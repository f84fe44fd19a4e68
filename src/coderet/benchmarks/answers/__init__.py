"""How each benchmark asks, reads and judges: one file a benchmark, each with an `Answering` that its record names."""
