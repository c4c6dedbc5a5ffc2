"""Names the packages of the wheel, whose folders lie apart; the rest is in pyproject.toml."""

from setuptools import find_packages, setup

FOLDERS = {
    "tmconvert": "convert",
    "tmconvert.symbolics": "symbolics",
    "tmconvert.cli": "cli",
    "tmconvert.samples": "samples",
}
# The links of convert/, which lead editors to the other folders, are no packages of their own.
LINKS = ["symbolics*", "cli*", "samples*"]

setup(
    package_dir=FOLDERS,
    packages=[
        *FOLDERS,
        *(
            f"{name}.{inner}"
            for name, path in FOLDERS.items()
            for inner in find_packages(path, exclude=LINKS)
        ),
    ],
)
