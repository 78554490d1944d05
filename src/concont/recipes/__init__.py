"""The shipped recipes: one YAML file a data set."""
