"""Where archives and tables lie: a folder, here or in an object store, and in it Delta tables of Parquet."""
