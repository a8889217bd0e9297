"""Reads model answers, scores them, reports. `eval` is also a builtin's name: write `from eval.x import y`."""
