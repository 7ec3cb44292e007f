"""Looking for records: where to look (`seeking.py`), what to keep (`filter_text.py`, `filters.py`),
the running search (`scan.py`), what comes in at the end (`local/tail.py`), one record, files of
them."""
