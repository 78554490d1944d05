import pyarrow as pa
import pytest

from concont.tables.columns import find_joined, tidy, to_strings

KINDS = {
    "lists": pa.list_(pa.string()),
    "large lists": pa.large_list(pa.string()),
    "lists of one size": pa.list_(pa.string(), 2),
    "views of lists": pa.list_view(pa.string()),
    "large views of lists": pa.large_list_view(pa.string()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_every_kind_become_text(kind):
    array = pa.array([["a", "b"], None, ["c", None]], KINDS[kind])
    for column in (array, array.slice(0), pa.chunked_array([array[:1], array[1:]])):
        assert to_strings(column).to_pylist() == ["a|b", "", "c|"]
    assert to_strings(array[1:]).to_pylist() == ["", "c|"]
    assert to_strings(pa.chunked_array([], KINDS[kind])).to_pylist() == []


def test_lists_of_numbers_and_of_nothing_become_text():
    assert to_strings(pa.array([[2, 10], []])).to_pylist() == ["2|10", ""]
    assert to_strings(pa.array([[], None])).to_pylist() == ["", ""]


@pytest.mark.parametrize("content", [[[["a"], ["b"]]], [{"a": 1}], [[{"a": 1}]]])
def test_what_is_neither_text_nor_a_list_of_it_is_refused(content):
    with pytest.raises(pa.ArrowException):
        to_strings(pa.array(content))


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_hold_a_bar_are_found_by_their_entry(kind):
    array = pa.array([["a", "b"], None, ["c", "d|"], ["|", "x|y"]], KINDS[kind])
    assert find_joined(array) == {2: "d|", 3: "|"}
    assert find_joined(array[2:]) == {0: "d|", 1: "|"}
    assert find_joined(pa.array(["a|b"])) == {}  # the way to write two names as text


def test_text_is_trimmed_and_has_one_unicode_form():
    assert tidy(pa.array([" a ", "b\t"])).to_pylist() == ["a", "b"]
    assert tidy(pa.array(["a\u0308 ", "\u00e4"])).to_pylist() == ["\u00e4", "\u00e4"]
    assert tidy(pa.array([], pa.string())).to_pylist() == []
