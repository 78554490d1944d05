"""Many runs: what is missing, how long it takes, where it runs, and what came out."""
