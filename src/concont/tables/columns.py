"""Arrow columns of any sensible type as text."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from concont.tables.spreadsheet import FORMULA, NUMBER


def tidy(text: Any) -> Any:
    """An array of strings without the white space around them, in one Unicode form (NFC)."""
    text = pc.utf8_trim_whitespace(text)
    if pc.all(pc.string_is_ascii(text)).as_py() is False:
        text = pc.utf8_normalize(text, "NFC")
    return text


def to_strings(array: Any) -> Any:
    """A column of plain values or of lists of them as strings; what is missing is empty.

    Arrow's own error where it holds anything else.
    """
    array = _combine(array)
    if _is_list(array.type):
        return pc.binary_join(_to_lists(array), "|")
    if pa.types.is_floating(array.type):  # whole numbers become floats where some are missing
        array = pc.if_else(pc.is_nan(array), None, array)
        if pc.all(pc.equal(pc.floor(array), array)).as_py() is not False:
            array = array.cast(pa.int64())
    return pc.fill_null(array.cast(pa.string()), "")


def find_joined(array: Any) -> dict[int, str]:
    """Of a column of lists: the entries with a name that holds a `|`, and the first such name."""
    array = _combine(array)
    if not _is_list(array.type):
        return {}
    lists = _to_lists(array)
    names, entries = lists.flatten(), pc.list_parent_indices(lists)
    joined = pc.match_substring(names, "|")
    found = zip(entries.filter(joined).to_pylist(), names.filter(joined).to_pylist(), strict=True)
    return dict(reversed(list(found)))


def _combine(array: Any) -> Any:
    """A column in one piece."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # of no chunk, or of more than 2 GB
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _is_list(kind: Any) -> bool:
    types = pa.types
    checks = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    views = (types.is_list_view, types.is_large_list_view)
    return any(check(kind) for check in checks + views)


def _to_lists(array: Any) -> Any:
    """Lists of any kind as lists of strings; a list that is missing is empty."""
    if _is_list(array.type.value_type):
        raise pa.ArrowNotImplementedError("lists within lists")
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), to_strings(array.flatten()))


def escape_column(cells: Any) -> Any:
    """An Arrow array of strings, each as `escape_formula` writes it."""
    return pc.if_else(_runs_as_formula(cells), pc.binary_join_element_wise("'", cells, ""), cells)


def unescape_column(cells: Any) -> Any:
    """The array of which `escape_column` made cells."""
    quoted = pc.starts_with(cells, "'")
    if not pc.any(quoted).as_py():
        return cells
    rest = pc.if_else(quoted, pc.utf8_slice_codeunits(cells, 1), "")
    return pc.if_else(_runs_as_formula(rest), rest, cells)


def _runs_as_formula(cells: Any) -> Any:
    begins = pc.match_substring_regex(cells, FORMULA)
    return pc.and_not(begins, pc.match_substring_regex(cells, NUMBER))
