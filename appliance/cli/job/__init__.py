"""`penstock job …`: derived streams. One module per command; what runs jobs is in spark_local."""
