"""A trained run as a file that runs elsewhere: exported, checked, described, served."""
