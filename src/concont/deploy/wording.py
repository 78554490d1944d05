"""What an export found, in words: the same on the screen and in the model card."""

from concont.deploy.check import Comparison
from concont.deploy.quantise import Quantised


def describe_check(found: Comparison) -> str:
    """How the file was compared with the network, and what was found."""
    unread = "; the run's own could not be read" if found.kind == "random" else ""
    return (
        f"answers as the run: largest difference {found.difference:.1e} on {found.images} "
        f"{_name_kind(found.kind)} images in batches of 1, 2 and 7{unread}"
    )


def describe_quantised(found: Quantised) -> str:
    """Both models side by side."""
    on = f"{found.measured_on:,} {_name_kind(found.kind)} images"
    lines = [f"calibrated on {found.calibrated_on} training images; on {on}:"]
    for name, size, accuracy in (
        ("float", found.bytes_float, found.accuracy_float),
        ("int8", found.bytes_int8, found.accuracy_int8),
    ):
        said = "" if accuracy is None else f", accuracy {100 * accuracy:.2f} %"
        lines.append(f"  {name:5} {size / 1e6:.2f} MB{said}")
    return "\n".join([*lines, f"  the same label on {100 * found.agreement:.2f} %"])


def _name_kind(kind: str) -> str:
    return "held-out" if kind == "holdout" else kind
