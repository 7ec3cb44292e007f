"""`penstock demo`: real data into an appliance, jobs over it, and what came out compared."""
