"""An archive of records of `__consumer_offsets` made into the tables of `schemas.TABLES`."""
