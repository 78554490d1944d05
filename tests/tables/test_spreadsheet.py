import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import example, given

from concont.tables.columns import escape_column, unescape_column
from concont.tables.spreadsheet import (
    escape_formula,
    unescape_formula,
)

CELLS = st.text("'=+-@\t\r\n .1e9aä|", max_size=6) | st.text(max_size=9)


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+cat", "-cat", "@cat", "\tcat", "\r=1", "-1+2", "-", "+1 2", "-1e", "=", "- 1", "-٣"],
)
def test_what_begins_like_a_formula_has_an_apostrophe_before_it(text):
    assert escape_formula(text) == f"'{text}"
    assert unescape_formula(f"'{text}") == text


@pytest.mark.parametrize(
    "text",
    ["", "cat", "a=b", "-1", "+1.5", "-.5", "-1.", "-1e-5", "3", "'", "'cat", "'-1", "''", "'n'"],
)
def test_numbers_and_other_words_stay_as_they_are(text):
    assert escape_formula(text) == text
    assert unescape_formula(text) == text


@given(CELLS)
@example("'=1")
@example("''=1")
@example("''-1")
@example("-1\n")
def test_what_is_read_is_what_was_written(text):
    assert unescape_formula(escape_formula(text)) == text
    assert escape_formula(text)[:1] not in ("=", "@", "\t", "\r")


@given(st.lists(CELLS, max_size=8))
@example(["'=1", "-1\n", "-1", "", "=1", "-٣"])
def test_columns_are_written_and_read_like_their_cells(texts):
    column = pa.array(texts, pa.string())
    assert escape_column(column).to_pylist() == [escape_formula(text) for text in texts]
    assert unescape_column(column).to_pylist() == [unescape_formula(text) for text in texts]
