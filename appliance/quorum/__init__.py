"""Who leads the metadata log, and what of it is agreed: one replica of a KRaft quorum."""
