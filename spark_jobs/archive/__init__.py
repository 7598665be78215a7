"""Archives of topics: Parquet files with every column of Spark's kafka source."""
