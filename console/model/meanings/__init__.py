"""The meanings of errors and events, with remedies: for the pages and `penstock explain`."""
