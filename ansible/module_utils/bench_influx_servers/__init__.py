"""Promise: the databases, users, buckets and policies of an InfluxDB server become as declared. Python 3.9, standard library."""
