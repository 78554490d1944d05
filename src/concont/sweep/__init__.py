"""Many runs: jobs, where they run, how long they take, what came out; nothing of any paper."""
