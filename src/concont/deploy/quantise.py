"""An ONNX model with 8-bit weights and activations, and what that costs in accuracy."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concont.data.mapped_arrays import RowsOf
from concont.data.problem import Problem
from concont.deploy.check import spread
from concont.deploy.checksum import add_checksum
from concont.deploy.description import IMAGES, LOGITS
from concont.deploy.formats import quiet
from concont.deploy.onnx_model import OnnxModel, load_onnx

CALIBRATED_ON = 300  # training images
MEASURED_ON = 2000  # images at most
AT_ONCE = 50  # images in a batch
# The pixels' scaling and the softmax stay as they are: they cost nothing and need their digits.
QUANTISED = ["Add", "Conv", "GlobalAveragePool", "MatMul", "MaxPool", "Gemm", "ReduceMean", "Relu"]


@dataclass(frozen=True)
class Quantised:
    """Both models side by side."""

    calibrated_on: int  # training images
    bytes_float: int
    bytes_int8: int
    measured_on: int
    kind: str  # of images they were measured on: "test", "holdout" or "training"
    agreement: float  # share of these that both give the same label
    accuracy_float: float | None  # None: their labels are not known
    accuracy_int8: float | None


def quantise(model: Path, out: Path, images: NDArray[np.uint8] | RowsOf) -> int:
    """Write the 8-bit model; returns how many of the training images it was calibrated on."""
    from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    chosen = spread(images, CALIBRATED_ON)
    with quiet(), TemporaryDirectory() as folder:
        prepared = Path(folder) / "prepared.onnx"
        quant_pre_process(model, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            out,
            _make_reader(chosen),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=QUANTISED,
            nodes_to_exclude=_find_last_layer(prepared),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
    _copy_description(model, out)
    return len(chosen)


def measure(model: Path, int8: Path, problem: Problem, calibrated_on: int) -> Quantised:
    """Accuracy and size of both, on images that neither was trained or calibrated on if any."""
    images, labels, kind = problem.test_images, problem.test_labels, problem.evaluated_on
    if images is None or kind is None:
        images, labels, kind = problem.images, None, "training"
    seen = spread(images, MEASURED_ON)
    truth = None if labels is None else spread(labels, MEASURED_ON)
    found = [_predict(load_onnx(path, "cpu"), seen) for path in (model, int8)]
    shares = [None if truth is None else float((each == truth).mean()) for each in found]
    return Quantised(
        calibrated_on=calibrated_on,
        bytes_float=model.stat().st_size,
        bytes_int8=int8.stat().st_size,
        measured_on=len(seen),
        kind=kind,
        agreement=float((found[0] == found[1]).mean()),
        accuracy_float=shares[0],
        accuracy_int8=shares[1],
    )


def _predict(model: OnnxModel, images: NDArray[np.uint8]) -> NDArray[np.int64]:
    starts = range(0, len(images), AT_ONCE)
    return np.concatenate([model.predict(images[k : k + AT_ONCE]) for k in starts])


def _make_reader(images: NDArray[np.uint8]) -> Any:
    """The images in batches, as ONNX Runtime asks for them."""
    from onnxruntime.quantization import CalibrationDataReader

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            starts = range(0, len(images), AT_ONCE)
            self.batches = iter([{IMAGES: images[k : k + AT_ONCE]} for k in starts])

        def get_next(self) -> Any:
            return next(self.batches, None)

    return Reader()


def _find_last_layer(path: Path) -> list[str]:
    """The node whose answer the logits are: 8 bits are too few to tell close classes apart."""
    import onnx

    return [node.name for node in onnx.load(path).graph.node if LOGITS in node.output]


def _copy_description(model: Path, out: Path) -> None:
    import onnx

    made = onnx.load(out)
    onnx.helper.set_model_props(made, load_onnx(model, "cpu").description.as_texts())
    out.write_bytes(add_checksum(made.SerializeToString()))
