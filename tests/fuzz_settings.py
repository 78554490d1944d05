"""Readers of recipes, settings and sweeps."""

import json

from concont.config.resolve import parse_assignments, read_settings, resolve
from concont.sweep.sweep_file import read_jobs
from fuzz_reader import Reader, Tree


class Recipe(Tree):
    """A recipe."""

    name, yaml = "recipe.yaml", True

    def good(self, folder, draw):
        settings = resolve({"data": {"source": "digits"}}).as_dict()
        del settings["recipe"]
        if draw.random() < 0.3:
            settings["extends"] = draw.choice(("digits", "recipe.yaml", "none", ".."))
        return settings

    def read(self, path):
        resolve({"data": {"source": "digits"}}, recipe=str(path))


class Config(Recipe):
    """A run's own settings."""

    def good(self, folder, draw):
        return resolve({"data": {"source": "digits"}}, recipe="digits").as_dict()

    def read(self, path):
        read_settings(path).hash("x", "y")


class Sweep(Tree):
    """A sweep's file."""

    name, yaml = "sweep.yaml", True

    def good(self, folder, draw):
        axes = {"method.threshold": [0.7, 0.8], "train.partial_share": [None, 0.25]}
        base = {"recipe": "digits", "train": {"epochs": 3}}
        return {"base": base, "axes": axes, "seeds": [1, 2], "runs": [{"name": "a"}, {}]}

    def read(self, path):
        read_jobs(path)


class Assignment(Reader):
    """`--set` on the command line."""

    def make(self, folder, draw):
        section, values = draw.choice(
            list(resolve({"data": {"source": "digits"}}).as_dict().items())[1:]
        )
        name, value = draw.choice(list(values.items()))
        return f"{section}.{name}={json.dumps(value)}".encode()

    def read(self, path):
        text = path.read_text("utf-8", "replace")
        parse_assignments([text])
        resolve({"data": {"source": "digits"}}, assignments=[text])
