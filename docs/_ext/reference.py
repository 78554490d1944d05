"""References written from the code when the site is built: every setting, every command.

In a page, `{settings-reference}` and `{command-reference}` stand for them. Nothing generated is
kept in the repository, so nothing can fall behind the code.
"""

import ast
import inspect
import io
import textwrap
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from annotated_types import Ge, Gt, Le, Lt, MultipleOf
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from concont.cli.app import app
from concont.config.registry import load_registered, registered_names
from concont.config.resolve import SECTIONS
from concont.types import LARGEST

PLAIN = {int: "whole number", float: "number", str: "text", bool: "true or false"}
BOUNDS = {
    Ge: ("ge", "from {}"),
    Gt: ("gt", "above {}"),
    Le: ("le", "up to {}"),
    Lt: ("lt", "below {}"),
}


@dataclass(frozen=True)
class Setting:
    """One line of the reference."""

    key: str  # as `--set` takes it
    kind: str
    default: str
    description: str


def comments_of(cls: type) -> dict[str, str]:
    """The comment beside each field, or above it, from the source: a dataclass knows neither."""
    source = textwrap.dedent(inspect.getsource(cls))
    beside, above = {}, {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            alone = token.line.lstrip().startswith("#")
            (above if alone else beside)[token.start[0]] = token.string.lstrip("# ")
    (body,) = (node.body for node in ast.parse(source).body)
    lines = {node.target.id: node for node in body if isinstance(node, ast.AnnAssign)}
    return {
        field.name: beside.get(node.end_lineno) or above.get(node.lineno - 1, "")
        for field in fields(cls)
        if (node := lines.get(field.name)) is not None  # else it is inherited
    }


def describe_type(hint: Any) -> str:
    """A type in words, with its range."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        limits = [describe_bound(bound) for bound in inner[1:]]
        return ", ".join([describe_type(inner[0]), *filter(None, limits)])
    if origin is Literal:
        return " or ".join(f"`{choice}`" for choice in inner)
    if origin in (Union, UnionType):
        kinds = [describe_type(kind) for kind in inner if kind is not NoneType]
        return " or ".join([*kinds, *(["`null`"] if NoneType in inner else [])])
    if origin is tuple:
        kind = describe_type(inner[0])
        return f"list of {kind}" if inner[-1] is Ellipsis else f"list of {len(inner)}: {kind}"
    return PLAIN.get(hint) or hint.__name__.lower()


def describe_bound(bound: Any) -> str:
    """One end of a range; an infinite one goes without saying."""
    if isinstance(bound, MultipleOf):
        return f"a multiple of {bound.multiple_of}"
    attribute, words = BOUNDS[type(bound)]
    value = getattr(bound, attribute)
    return "" if value in (float("inf"), LARGEST) else words.format(value)


def describe_value(value: Any) -> str:
    """As YAML has it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (tuple, list)):
        return "[" + ", ".join(map(describe_value, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value) or '""'


def settings_of(cls: type, section: str, instance: Any = None) -> Iterator[Setting]:
    """The settings of a dataclass, those of dataclasses inside it included."""
    hints, comments = get_type_hints(cls, include_extras=True), comments_of(cls)
    for field in fields(cls):
        key, hint = f"{section}.{field.name}", hints[field.name]
        value = getattr(instance if instance is not None else cls(), field.name)
        if is_dataclass(hint):
            yield from settings_of(hint, key, value)
        else:
            yield Setting(
                key, describe_type(hint), describe_value(value), comments.get(field.name, "")
            )


def all_settings() -> dict[str, tuple[str, list[Setting]]]:
    """By heading: what the section is for, and its settings."""
    found = {}
    for name, cls in SECTIONS.items():
        found[name] = (inspect.getdoc(cls) or "", list(settings_of(cls, name)))
    for name in registered_names():
        cls = load_registered(name)
        found[f"method: {name}"] = (inspect.getdoc(cls) or "", list(settings_of(cls, "method")))
    return found


def in_cell(text: str) -> str:
    """Markdown that a table's cell can hold."""
    return text.replace("|", "\\|").replace("\n", " ").replace("*", "\\*")


def write_table(header: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write_settings() -> str:
    """The reference of settings in Markdown."""
    parts = []
    for heading, (purpose, settings) in all_settings().items():
        rows = [
            [f"`{s.key}`", in_cell(s.kind), f"`{in_cell(s.default)}`", in_cell(s.description)]
            for s in settings
        ]
        table = write_table(["setting", "values", "default", "meaning"], rows)
        parts.append(f"## {heading}\n\n{purpose}\n\n{table}")
    return "\n".join(parts)


def all_commands() -> Iterator[tuple[str, Any]]:
    """Every command with its full name, groups included."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        yield name, command
        for child, inner in sorted(getattr(command, "commands", {}).items()):
            yield from walk(f"{name} {child}", inner)

    yield from walk("concont", typer.main.get_command(app))


def describe_option(option: Any) -> list[str]:
    """Its names, its default, its help; an argument has one name, without dashes."""
    names = " / ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])
    default = getattr(option.default, "value", option.default)  # of a choice
    unsaid = getattr(option, "is_flag", False) or default is None or callable(default)
    shown = "" if unsaid else f"`{in_cell(str(default))}`"
    return [names, shown, in_cell(getattr(option, "help", None) or "")]


def write_commands() -> str:
    """The reference of commands in Markdown."""
    parts = []
    for name, command in all_commands():
        options = [p for p in command.params if p.name != "help"]
        table = write_table(["option", "default", "meaning"], list(map(describe_option, options)))
        parts.append(
            f"## {name}\n\n{inspect.cleandoc(command.help or '')}\n\n{table if options else ''}"
        )
    return "\n".join(parts)


class Generated(SphinxDirective):
    """Markdown that a function writes, in the place of the directive."""

    write = staticmethod(write_settings)

    def run(self) -> list[Any]:
        """The parsed text."""
        return self.parse_text_to_nodes(self.write(), allow_section_headings=True)


class GeneratedCommands(Generated):
    """The same of commands."""

    write = staticmethod(write_commands)


def setup(application: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    application.add_directive("settings-reference", Generated)
    application.add_directive("command-reference", GeneratedCommands)
    return {"parallel_read_safe": True}
