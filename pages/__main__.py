"""Write every page that is made of code into the checkout: `python -m pages`."""

from pathlib import Path

from pages.made import PAGES

if __name__ == "__main__":
    for name, made in PAGES.items():
        (Path(__file__).parents[1] / name).write_text(made())
