import subprocess

from concont import version


def test_the_commit_comes_from_the_environment_first(monkeypatch):
    monkeypatch.setenv("CONCONT_COMMIT", "abc123")
    assert version.commit() == ("abc123", True)
    monkeypatch.setenv("CONCONT_COMMIT", "abc123-dirty")
    assert version.commit() == ("abc123", False)
    assert version.describe() == f"concont {version.__version__} (commit abc123, modified)"


def test_then_from_the_file_that_a_build_leaves(monkeypatch, tmp_path):
    monkeypatch.delenv("CONCONT_COMMIT", raising=False)
    monkeypatch.setattr(version, "HERE", tmp_path)
    assert version.commit() == (None, None)
    assert "commit unknown" in version.describe()
    (tmp_path / "COMMIT").write_text("feed5\n")
    assert version.commit() == ("feed5", True)


def test_then_from_git_but_only_its_own(monkeypatch, tmp_path):
    monkeypatch.delenv("CONCONT_COMMIT", raising=False)
    package = tmp_path / "src" / "concont"
    package.mkdir(parents=True)
    monkeypatch.setattr(version, "HERE", package)
    assert version.commit() == (None, None)

    def git(*words):
        identity = ["-c", "user.name=t", "-c", "user.email=t@t"]
        done = subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-q")
    (package / "file").write_text("1")
    git("add", ".")
    git("commit", "-qm", "first")
    assert version.commit() == (git("rev-parse", "HEAD"), True)
    (package / "file").write_text("2")
    assert version.commit() == (git("rev-parse", "HEAD"), False)
