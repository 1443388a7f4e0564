"""One module for each system: how it is set up, given jobs, run, and asked what is unfinished."""
