//! Three million rows that Polars wrote, each value beside what pyarrow reads there.

use burn::data::dataset::Dataset;
use burn_shards::Rows;
use serde::Deserialize;
use std::{env, fs, path::PathBuf, time::Instant};

const ROWS: usize = 3_000_000;

#[derive(Debug, Deserialize)]
struct Flight {
    /// Microseconds since 1970.
    date: i64,
    delay: i64,
    distance: i64,
    origin: String,
    destination: String,
}

/// `FLIGHTS` names the folder of `golden/dump_flights.py`.
#[test]
#[ignore = "needs flights-3m.parquet: see golden/dump_flights.py"]
fn all_flights_are_what_pyarrow_reads() {
    let folder = PathBuf::from(env::var_os("FLIGHTS").expect("FLIGHTS names the folder of golden/dump_flights.py"));
    let column = |name: &str| fs::read(folder.join(format!("flights-3m.{name}"))).unwrap();
    let numbers = |name: &str| -> Vec<i64> {
        let bytes = column(name);
        bytes.as_chunks().0.iter().map(|eight| i64::from_le_bytes(*eight)).collect()
    };
    let lines =
        |name: &str| -> Vec<String> { String::from_utf8(column(name)).unwrap().lines().map(String::from).collect() };
    let (dates, delays, distances) = (numbers("date"), numbers("delay"), numbers("distance"));
    let (origins, destinations) = (lines("origin"), lines("destination"));
    let lens = [dates.len(), delays.len(), distances.len(), origins.len(), destinations.len()];
    assert_eq!(lens, [ROWS; 5]);

    let rows = Rows::<Flight>::parquet(folder.join("flights-3m.parquet")).open().unwrap();
    assert_eq!(rows.len(), ROWS);
    let begun = Instant::now();
    let mut differ = 0;
    for at in 0..ROWS {
        let Flight { date, delay, distance, origin, destination } = rows.get(at).unwrap();
        let same = [
            date == dates[at],
            delay == delays[at],
            distance == distances[at],
            origin == origins[at],
            destination == destinations[at],
        ];
        differ += same.into_iter().filter(|same| !same).count();
    }
    let rate = ROWS as f64 / begun.elapsed().as_secs_f64();
    println!("{ROWS} rows, {differ} of {} values differ, {rate:.0} rows/s on one thread", 5 * ROWS);
    assert_eq!(differ, 0);
}
