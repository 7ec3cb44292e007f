"""Records: browse, tail, one record, export."""
