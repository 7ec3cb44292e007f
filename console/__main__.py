"""`python -m console`: the `penstock` command of this very interpreter."""

from console import main

main()
