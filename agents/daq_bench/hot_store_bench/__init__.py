"""The parts of `make bench` that measure `hotstore` (`agents/hot_store`) against Redis, raw LMDB and RocksDB.

It imports `bench_rounds`, `bench_model` and `rig`; its parts share `trial` and do not know each other."""
