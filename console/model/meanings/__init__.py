"""What errors and events mean, and what to do: for the pages and `penstock explain`."""
