"""One replica of a KRaft quorum: leader election and commitment of the metadata log."""
