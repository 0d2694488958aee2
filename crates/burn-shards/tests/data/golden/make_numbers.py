#!/usr/bin/env python3
"""Writes the Parquet files that the tests of order and of memory read. Run it in the folder of this file.

Written with pyarrow 26.0.1. The rows are those of `rows.rs`, and other formats are written by `write.rs`.
"""
import os

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 240


def row(n):
    return bytes((n * 31 + k * 7) % 251 for k in range(n * 37 % 89 + 1))


def write(name, rows, **options):
    table = pa.table({"bytes": pa.array([row for _, row in rows], pa.binary()), "label": pa.array([n for n, _ in rows], pa.int64())})
    pq.write_table(table, name, write_statistics=False, **options)


def main():
    os.makedirs("numbers", exist_ok=True)
    rows = [(n, row(n)) for n in range(ROWS)]
    small = {"row_group_size": 40, "data_page_size": 200, "write_batch_size": 4}
    kinds = {
        # Values are read one by one.
        "direct": {"compression": "none", "use_dictionary": False, "write_page_index": True},
        # A page is decoded for its neighbours.
        "pages": {"compression": "zstd", "use_dictionary": False, "write_page_index": True},
        # A column chunk is decoded for its neighbours.
        "chunks": {"compression": "snappy"},
    }
    for kind, options in kinds.items():
        for part in range(2):
            write(f"numbers/{kind}-{part}.parquet", rows[part * ROWS // 2:(part + 1) * ROWS // 2], **small, **options)
    # 1,024 rows of 16 KiB, two in a page: 16 MiB that compress to little.
    large = [(n, bytes([n % 251]) * (16 << 10)) for n in range(1024)]
    write("numbers/large.parquet", large, compression="zstd", use_dictionary=False, write_page_index=True,
          row_group_size=128, data_page_size=32 << 10, write_batch_size=2)


if __name__ == "__main__":
    main()
