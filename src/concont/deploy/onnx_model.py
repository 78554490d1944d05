"""A model that `concont export` wrote, run by ONNX Runtime: no PyTorch, and no code in the file."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from concont.cores import count_cores
from concont.deploy.checksum import fits_checksum
from concont.deploy.description import (
    FEATURES,
    IMAGES,
    LOGITS,
    PROBABILITIES,
    Description,
    read_description,
)
from concont.errors import DataError, UsageError, printable
from concont.images.files import Fit

KINDS = {IMAGES: "tensor(uint8)", FEATURES: "tensor(float)"}
PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}
SILENT = 4  # ONNX Runtime's own word goes to standard error, beside the error that it raises


@dataclass(frozen=True)
class OnnxModel:
    """Labels images as the run that it was exported from."""

    description: Description
    session: ort.InferenceSession
    gives_probabilities = True

    @property
    def classes(self) -> tuple[str, ...]:
        """Their names, in the order of the probabilities."""
        return self.description.classes

    @property
    def shape(self) -> tuple[int, ...]:
        """Of an input: (H, W, channels) of an image, or (D,) of a row of features."""
        return self.description.shape

    @property
    def fit(self) -> Fit:
        """How an image file is given that shape."""
        return self.description.fit

    def compute(self, images: NDArray[Any]) -> list[NDArray[np.float32]]:
        """Logits and probabilities (M, C) of images (M, H, W, channels)."""
        wanted = (len(images), len(self.classes))
        inputs = images if self.description.features is None else images.astype(np.float32)
        try:
            found: list[NDArray[np.float32]] = self.session.run(
                [LOGITS, PROBABILITIES], {self.description.goes_in: inputs}
            )
        except Exception as error:  # of many kinds, and what is in the file decides which
            raise DataError(f"the model cannot be run: {_first_line(error)}") from None
        if any(getattr(each, "shape", None) != wanted for each in found):
            raise DataError(f"the model does not answer with {wanted[1]} numbers for each image")
        if not all(np.isfinite(each).all() for each in found):
            raise DataError("the model answers with what is no number")
        return found

    def predict_proba(self, images: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities (M, C) of images (M, H, W, channels)."""
        return self.compute(images)[1]

    def predict(self, images: NDArray[Any]) -> NDArray[np.int64]:
        """The likeliest class (M,) of each image."""
        likeliest: NDArray[np.int64] = self.predict_proba(images).argmax(axis=1)
        return likeliest


def load_onnx(path: Path, device: str = "auto") -> OnnxModel:
    """Read a model back; a DataError says in one line why a file is none."""
    provider = choose_provider(device)
    options = ort.SessionOptions()
    options.log_severity_level = SILENT
    options.intra_op_num_threads = count_cores()
    # Threads that wait sleep: else they take the cores from what else runs there.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # A whole model is one file: what it names beside itself is not looked for anywhere.
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", os.devnull
    )
    content, where = _read(path), printable(path)
    if not fits_checksum(content):
        raise DataError(f"{where} was damaged or changed after its export (its checksum differs)")
    try:
        # Else it prints what is wrong, raw as it stands in the file, before it raises it.
        session = ort.InferenceSession(content, options, providers=[provider], enable_fallback=0)
    except Exception as error:  # of many kinds, and what is in the file decides which
        raise DataError(f"{where} is no model that can be read: {_first_line(error)}") from None
    description = read_description(_read_texts(session, where), where)
    _refuse_other_ports(session, description, where)
    return OnnxModel(description, session)


def _read_texts(session: ort.InferenceSession, where: str) -> dict[str, str]:
    try:
        texts: dict[str, str] = session.get_modelmeta().custom_metadata_map
    except UnicodeDecodeError:
        raise DataError(f"{where}: what it says of itself is damaged") from None
    return texts


def choose_provider(device: str) -> str:
    """ONNX Runtime's name for where to compute; `auto` is the GPU where there is one."""
    there = ort.get_available_providers()
    if device == "cuda" and PROVIDERS["cuda"] not in there:
        raise UsageError("this ONNX Runtime has no CUDA (pip install onnxruntime-gpu); try cpu")
    cuda = device != "cpu" and PROVIDERS["cuda"] in there
    return PROVIDERS["cuda" if cuda else "cpu"]


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise UsageError(f"{printable(path)}: no such file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{printable(path)} cannot be read: {error.strerror}") from None


def _refuse_other_ports(
    session: ort.InferenceSession, description: Description, where: str
) -> None:
    """What goes in and comes out must be what the description says."""
    inputs = [(each.name, each.type, list(each.shape[1:])) for each in session.get_inputs()]
    name = description.goes_in
    if inputs != [(name, KINDS[name], list(description.shape))]:
        raise DataError(f"{where} does not take the {name} that it says it takes")
    answers = {each.name: each.shape[-1] for each in session.get_outputs() if each.shape}
    count = len(description.classes)
    if any(answers.get(name) != count for name in (LOGITS, PROBABILITIES)):
        raise DataError(f"{where} does not answer with a number for each of its {count} classes")


def _first_line(error: Exception) -> str:
    """What it says in one line that is not too long, without ONNX Runtime's own numbers."""
    said = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split()))
    return printable(said)[:200] or type(error).__name__
