"""Which files lie in a folder of images, listed folder by folder rather than asked one by one."""

import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from concont.errors import DataError, UsageError, printable
from concont.images.files import walk_images

SPACED = r"^\s|\s$"
LONGEST = 4096  # letters of a path
# Paths that name a place by itself, here or on Windows, or that climb.
LEAVING = r"^/|^[A-Za-z]:[\\/]|^\\\\|(^|[/\\])\.\.([/\\]|$)"


def list_image_names(folder: Path) -> Any:
    """The images in a folder and below it, as an Arrow array of paths relative to it, sorted.

    Known by their ending. What is hidden is left out, and so are links to folders; a link to a
    file outside the folder is refused.
    """
    if not folder.is_dir():
        raise UsageError(f"{printable(folder)}: no such folder")
    found, real_root = [], os.path.realpath(folder)
    for name, entry in walk_images(folder):
        if entry.is_symlink() and not _is_inside(entry.path, real_root):
            raise DataError(f"{printable(entry.path)}: a link that leaves the image folder")
        if entry.is_file():
            found.append(name)
    found.sort()
    try:
        return pa.array(found, pa.string())
    except UnicodeEncodeError:
        odd = next(name for name in found if not _is_unicode(name))
        path = printable(folder / odd)
        raise DataError(f"{path}: the file's name is no UTF-8; give it another name") from None


def name_files(images: Any, root: Path) -> Any:
    """Relative paths as their files are called: in one form, without spaces around them.

    Where there is no file of a name, that with the same letters in another Unicode form (macOS
    writes `ä` as two) or without the spaces is meant.
    """
    images = normalise_paths(images)
    odd = pc.or_(pc.invert(pc.string_is_ascii(images)), pc.match_substring_regex(images, SPACED))
    if not pc.any(odd).as_py():
        return images
    listed: dict[str, dict[str, str]] = {}
    names = images.dictionary_encode()
    asked = set(pc.unique(images.filter(odd)).to_pylist())
    found = [
        _find_name(name, root, listed) if name in asked else name
        for name in names.dictionary.to_pylist()
    ]
    return normalise_paths(pa.array(found, pa.string()).take(names.indices))


def normalise_paths(images: Any) -> Any:
    """Relative paths in one form, so that the same file has the same path: no `./`, no `//`."""
    if pc.any(pc.match_substring_regex(images, r"^\.?/|/\.?/")).as_py():
        images = pc.replace_substring_regex(images, r"/(\.?/)+", "/")
        images = pc.replace_substring_regex(images, r"^(\./)+", "")
    return images


def find_leaving(images: Any) -> NDArray[np.bool_]:
    """Whether each path leaves the folder it starts from, by what it says: absolute, or `..`."""
    return to_mask(pc.match_substring_regex(images, LEAVING))


def look_up(images: Any, root: Path) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each relative path: whether it is a file, and whether a link in it leaves the root."""
    folders = pc.replace_substring_regex(images, r"(^|/)[^/]*$", "").dictionary_encode()
    real_root, inside = os.path.realpath(root), {"": True}
    files: list[str] = []
    leaving: list[str] = []
    for folder in folders.dictionary.to_pylist():
        found, away = _list_files(root, folder, real_root)
        stays = _stays_inside(folder, root, real_root, inside)
        (files if stays else leaving).extend(found)
        leaving.extend(away)
    return _is_in(images, files), _is_in(images, leaving)


def describe_missing(image: str, root: Path) -> str:
    """What is said of a path that names no file."""
    hint = " (write / in place of \\)" if "\\" in image else ""
    return f"there is no file {printable(image)} in {printable(root)}{hint}"


def to_mask(booleans: Any) -> NDArray[np.bool_]:
    """An Arrow array of booleans without nulls as NumPy's."""
    return np.asarray(booleans.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _find_name(image: str, root: Path, listed: dict[str, dict[str, str]]) -> str:
    """The path of the file that is meant, else the path without spaces; listed: what is known."""
    for name in (image, image.strip()):
        under = ""
        for part in name.split("/"):
            if under not in listed:
                listed[under] = _list_forms(root, under)
            forms = listed[under]
            real = forms.get(part) or forms.get(unicodedata.normalize("NFC", part))
            if real is None:
                break
            under += f"{real}/"
        else:
            return under[:-1]
    return image.strip()


def _list_forms(root: Path, folder: str) -> dict[str, str]:
    """What lies in a folder, by its name and by the name in NFC."""
    try:
        names = os.listdir(root / folder)
    except (OSError, ValueError):  # there is no such folder
        return {}
    return {unicodedata.normalize("NFC", name): name for name in names} | {n: n for n in names}


def _list_files(root: Path, folder: str, real_root: str) -> tuple[list[str], list[str]]:
    """The files of one folder by their paths from the root, and those that links lead away from."""
    found: list[str] = []
    leaving: list[str] = []
    start = f"{folder}/" if folder else ""
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    found.append(start + entry.name)
                elif entry.is_symlink() and entry.is_file():
                    inside = _is_inside(entry.path, real_root)
                    (found if inside else leaving).append(start + entry.name)
    except (OSError, ValueError):  # there is no such folder
        pass
    return found, leaving


def _stays_inside(folder: str, root: Path, real_root: str, known: dict[str, bool]) -> bool:
    """Whether no link on the way to a folder leaves the root; known: the answers so far."""
    if folder not in known:
        if os.path.isabs(folder) or ".." in folder.split("/") or len(folder) > LONGEST:
            return _is_inside(os.path.join(root, folder), real_root)
        ends = [k for k, letter in enumerate(folder) if letter == "/"] + [len(folder)]
        stays = True
        for way in (folder[:end] for end in ends):
            if way not in known:
                path = os.path.join(root, way)
                known[way] = _is_inside(path, real_root) if _is_link(path) else stays
            stays = known[way]
    return known[folder]


def _is_link(path: str) -> bool:
    try:
        return os.path.islink(path)
    except ValueError:  # a name that no file can have
        return False


def _is_inside(path: str, real_root: str) -> bool:
    try:
        real = os.path.realpath(path)
    except ValueError:  # a name that no file can have
        return False
    return real == real_root or real.startswith(os.path.join(real_root, ""))


def _to_unicode(names: list[str]) -> Any:
    """Without names that are no UTF-8, which no table can hold."""
    try:
        return pa.array(names, pa.string())
    except UnicodeEncodeError:
        return pa.array([name for name in names if _is_unicode(name)], pa.string())


def _is_unicode(name: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def _is_in(images: Any, names: list[str]) -> NDArray[np.bool_]:
    return to_mask(pc.is_in(images, value_set=_to_unicode(names)))
