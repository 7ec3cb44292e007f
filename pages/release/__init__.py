"""What is made of a checkout for others to install: `python -m pages.release`."""
