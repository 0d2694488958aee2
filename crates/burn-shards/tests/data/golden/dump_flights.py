#!/usr/bin/env python3
"""Writes down what pyarrow reads in `flights-3m.parquet`, for the test in `flights.rs`.

    npm pack vega-datasets@3.2.1 && tar -xzf vega-datasets-3.2.1.tgz     3 million rows, written by Polars, in package/data
    python3 -m venv venv && venv/bin/pip install pyarrow==26.0.1
    venv/bin/python dump_flights.py package/data                         a file beside it for each column
    FLIGHTS=$PWD/package/data cargo test --features parquet --test data -- --ignored --nocapture flights

A column of numbers (times are microseconds since 1970) has 8 bytes for each, little-endian. A column of text has lines.
"""
import sys

import pyarrow as pa
import pyarrow.parquet as pq


def main():
    folder, = sys.argv[1:]
    table = pq.read_table(f"{folder}/flights-3m.parquet")
    for name, column in zip(table.column_names, table.columns):
        assert column.null_count == 0
        with open(f"{folder}/flights-3m.{name}", "wb") as f:
            if pa.types.is_large_string(column.type):
                lines = column.to_pylist()
                assert not any("\n" in line for line in lines)
                f.write("".join(line + "\n" for line in lines).encode())
            else:
                f.write(column.combine_chunks().cast(pa.int64()).to_numpy().astype("<i8").tobytes())
    print(f"{table.num_rows} rows of {', '.join(table.column_names)}")


if __name__ == "__main__":
    main()
