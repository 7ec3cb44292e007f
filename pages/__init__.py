"""Pages of the documentation that are made of what the code declares: settings, commands, APIs and
error codes.

`python -m pages` writes them into `docs/reference`; a test says when they are stale. What goes into
a page is plain text, and nothing of it depends on the machine.
"""
