"""What a reader of files from outside is to `make fuzz`."""

import json

import yaml


class Reader:
    """Files of one kind: a good one, how it is spoilt, and what reads it."""

    name = "file"

    def prepare(self, folder):
        """Write what stands beside the file."""

    def make(self, folder, draw):
        """The bytes of a good file."""
        raise NotImplementedError

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        """A spoilt file in the folder; returns where."""
        path = folder / self.name
        path.write_bytes(spoil(self.make(folder, draw), draw))
        return path

    def read(self, path):
        """Read it as the package does."""
        raise NotImplementedError


class Tree(Reader):
    """JSON or YAML: spoilt as bytes, or value by value."""

    yaml = False

    def good(self, folder, draw):
        """Nested values of a good file."""
        raise NotImplementedError

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        tree, path = self.good(folder, draw), folder / self.name
        whole = draw.random() < 0.6
        tree = spoil_values(tree, draw) if whole else tree
        text = (yaml.safe_dump if self.yaml else json.dumps)(tree).encode("utf-8", "replace")
        path.write_bytes(text if whole else spoil(text, draw))
        return path
