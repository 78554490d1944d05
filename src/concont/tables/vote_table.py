"""Votes on the images of a folder as the rows of a table, without writing one."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from concont.tables.problems import Problems
from concont.tables.text import COLUMNS, TableText, join_parts, make_part, read_unlabeled
from concont.tables.votes import choose_candidates, count_votes, make_rows, read_votes


def read_vote_text(
    votes: Path, folder: Path, min_votes: int, unlabeled: Path | None, problems: Problems
) -> TableText:
    """The rows that votes on a folder's images make: those that `data from-votes` writes."""
    found = read_votes(votes, folder, problems)
    made = make_rows(found, choose_candidates(count_votes(found), min_votes))
    empty = pa.repeat("", len(made))
    columns = {name: made[name].combine_chunks() for name in made.column_names}
    cells = {**dict.fromkeys(COLUMNS, empty), **columns}
    parts = [make_part(votes, folder, np.zeros(len(made), np.int64), cells, True)]
    if unlabeled is not None:
        parts.append(read_unlabeled(unlabeled, parts))
    return join_parts(parts)
