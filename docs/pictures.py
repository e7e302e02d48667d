"""Takes the pictures of docs/report.md: pages of `troupe report` and `troupe plan --html` in
headless Chromium.

    python3 docs/pictures.py NAME PAGE [WIDTH HEIGHT]

writes docs/pictures/NAME-light.png and NAME-dark.png, of the upper HEIGHT pixels of the page on a
screen of WIDTH. PAGE is a file, or a URL that begins with http. If WIDTH is that of a phone, below
600, there is only NAME.png, in the light theme. Needs Chromium and the PyPI package pillow.
dashboards/draw.py draws the boards.
"""

import pathlib
import subprocess
import sys
import tempfile

from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent / "pictures"
COLORS = 64  # few colours make the file small
PHONE_WIDTH = 600  # screens below it are those of phones, as in report/page.cc


def address(page):
    """The URL of a page, which is a URL already or names a file."""
    return page if page.startswith("http") else pathlib.Path(page).resolve().as_uri()


def take(page, width, height, is_dark, path):
    with tempfile.TemporaryDirectory() as folder:
        shot = pathlib.Path(folder) / "page.png"
        subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             *(["--force-dark-mode"] if is_dark else []), f"--user-data-dir={folder}/profile",
             f"--window-size={width},{height}", f"--screenshot={shot}", address(page)],
            check=True, capture_output=True, timeout=120)
        picture = Image.open(shot).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
        picture.save(path, optimize=True)


def main():
    if len(sys.argv) not in (3, 5):
        print(__doc__, file=sys.stderr)
        return 2
    name, page = sys.argv[1:3]
    width, height = map(int, sys.argv[3:] or ("1000", "1900"))
    if width < PHONE_WIDTH:
        take(page, width, height, False, FOLDER / f"{name}.png")
        return 0
    for theme in ("light", "dark"):
        take(page, width, height, theme == "dark", FOLDER / f"{name}-{theme}.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
