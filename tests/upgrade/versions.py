"""Which versions an upgrade comes from: those that were released before this checkout, by tag.

`installed.sources` gives the tree of each.
"""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
BEFORE_RELEASES = ("bd92743", "5bde3f4")
"""Newest first, for as long as there are fewer releases: after and before several appliances could
be one cluster."""
_RELEASE = re.compile(r"v[0-9]+(\.[0-9]+)*")


def earlier(n, tree=ROOT):
    """The commits of the last n releases (`v1.2.3`, none that is a candidate) that this one came
    from, newest first; what they lack of n is filled up with fixed ones, of which there are two. A
    checkout of a release comes from the one before it. Where there is no git, the fixed ones."""
    listed = _git(tree, "tag", "--merged", "HEAD", "--no-contains", "HEAD", "--sort=-v:refname")
    tags = [tag for tag in listed if _RELEASE.fullmatch(tag)]
    commits = [commit for tag in tags[:n] for commit in _git(tree, "rev-list", "-1", f"tags/{tag}")]
    return [*commits, *BEFORE_RELEASES][:n]


def _git(tree, *words):
    """The lines that git prints, none where there is no git or it refuses."""
    try:
        done = subprocess.run(["git", "-C", tree, *words], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return done.stdout.decode().split() if done.returncode == 0 else []
