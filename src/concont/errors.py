"""Mistakes and failures that a user is told about in one line, without a traceback."""


class ConcontError(Exception):
    """Something failed; the message says what and how to mend it, each argument a line."""

    exit_code = 1

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class UsageError(ConcontError):
    """The command or the configuration asks for something that cannot be."""

    exit_code = 2


class DataError(ConcontError):
    """A data file does not hold what it must; the message names the file, row or key."""


class NonFiniteLoss(ConcontError):
    """Training met a loss that is not a finite number; step: the first one, where it is known."""

    def __init__(self, message: str, step: int | None = None) -> None:
        super().__init__(message)
        self.step = step


class Interrupted(ConcontError):
    """The user or the system asked the run to stop; it can be resumed."""


def count(n: int, thing: str) -> str:
    """`1 row`, `2 rows`, `2 classes`."""
    many = "" if n == 1 else "es" if thing.endswith("s") else "s"
    return f"{n:,} {thing}{many}"


def printable(text: object) -> str:
    """Text on one line without control characters, whatever a file or a class is called."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in str(text))
