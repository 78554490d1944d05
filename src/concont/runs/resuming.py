"""What goes on with a run that was stopped."""

from pathlib import Path

from concont.runs.settings import Settings


def resume_command(path: str | Path, settings: Settings) -> str:
    """The command, or the call of Python; it names the code of the user's own that it may run."""
    method, network = settings.own_method, settings.model.own
    if network is not None and settings.model.own_digest is None:  # a module that Python was given
        config = "" if method is None else f"{{'method': {{'name': {method!r}}}}}, "
        return f"concont.train({config}resume={str(path)!r}, model=...)"
    words = [f"concont train --resume {path}"]
    words += [] if method is None else [f"--method {method}"]
    words += [] if network is None else [f"--model {network}"]
    return " ".join(words)
