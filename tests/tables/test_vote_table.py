from concont.tables.problems import Problems
from concont.tables.vote_table import read_vote_text
from image_tables import make_images, write_csv


def test_votes_are_rows_as_in_a_table_that_is_written(tmp_path):
    make_images(tmp_path / "photos", ["0.png", "sub/1.png", "2.png"])
    make_images(tmp_path / "more", ["2.png", "3.png"], start=5)
    rows = [("sub/1.png", "ann", "cat"), ("sub/1.png", "bob", "fox"), ("sub/1.png", "cid", "fox")]
    votes = write_csv(tmp_path / "votes.csv", rows, ("image", "annotator", "label"))
    for least, candidates, counts in ((1, "fox|cat", "2|1"), (2, "fox", "2")):
        folders = (tmp_path / "photos", least, tmp_path / "more")
        text = read_vote_text(votes, *folders, Problems())
        assert text.cells["image"].to_pylist() == ["0.png", "2.png", "sub/1.png", "2.png", "3.png"]
        assert text.cells["candidates"].to_pylist() == ["", "", candidates, "", ""]
        assert text.cells["votes"].to_pylist() == ["", "", counts, "", ""]
        assert text.place(2) == (tmp_path / "photos" / "sub/1.png", None)
        assert text.place(4) == (tmp_path / "more" / "3.png", None)
        assert text.has_votes
