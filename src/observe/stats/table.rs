//! Statistics as a table.

use super::{
    report::{Queues, Stats, share},
    stage::StageStats,
};
use crate::vocabulary::Stage;
use std::{fmt, time::Duration};

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: usize| bytes as f64 / 1e6;
        writeln!(f, "batches        {} ({} samples, {} errors)", self.batches, self.items, self.errors)?;
        if self.faults > 0 {
            let Self { faults, skipped, replaced, .. } = self;
            writeln!(f, "faults         {faults} ({skipped} samples skipped, {replaced} replaced)")?;
        }
        if self.left_out > 0 || self.filtered > 0 {
            let Self { left_out, filtered, .. } = self;
            writeln!(f, "left out       {left_out} samples of the data set in an epoch; so far {filtered} by filters")?;
        }
        writeln!(f, "throughput     {:.0} samples/s", self.items_per_second())?;
        writeln!(f, "step waited    {:.1} % of {:.1?}", 100.0 * self.wait_share(), self.total())?;
        writeln!(f, "first batch    {:.1?}", self.first_batch)?;
        write!(f, "workers        {}, busy {:.0} %", self.workers, 100.0 * self.workers_busy())?;
        if !self.looked.is_zero() {
            write!(f, ", asleep {:.0} % of tasks with slow reads", 100.0 * share(self.slept, self.looked))?;
        }
        writeln!(f)?;
        if !self.asked_to_wait.is_zero() {
            writeln!(f, "store busy     asked to wait for {:.1?}", self.asked_to_wait)?;
        }
        if self.transfer_threads > 0 {
            let (sent, rate) = (mb(self.sent_bytes as usize), self.gb_per_second());
            let busy = 100.0 * self.transfer_busy();
            writeln!(f, "transfers      {}, busy {busy:.0} %, {sent:.1} MB, {rate:.2} GB/s", self.transfer_threads)?;
        }
        if self.device_bytes_peak > 0 {
            let (now, peak) = (mb(self.device_bytes), mb(self.device_bytes_peak));
            writeln!(f, "device memory  {now:.1} MB, peak {peak:.1} MB")?;
        }
        let kind = self.memory.map_or_else(|| "none".into(), |kind| kind.to_string());
        write!(f, "slot memory    {:.1} MB, peak {:.1} MB, {kind}", mb(self.host_bytes), mb(self.host_bytes_peak))?;
        write!(f, ", {} allocations in {:.1?}", self.allocations, self.allocating)?;
        writeln!(f, ", {} of them after the start", self.late_allocations)?;
        let Queues { open, to_pin, to_send, ready } = self.queues;
        writeln!(
            f,
            "queues         {open:.1} batches open, {to_pin:.1} to pin, {to_send:.1} to send, {ready:.1} ready"
        )?;
        write!(f, "\n{:<13}{:>12}{:>11}{:>11}{:>11}{:>11}", "stage", "count", "busy", "p50", "p95", "p99")?;
        for stage in Stage::ALL {
            let StageStats { count, busy, p50, p95, p99, group } = self.stages.of(*stage);
            if *count == 0 {
                continue;
            }
            let name = stage.name();
            let [busy, p50, p95, p99] = [*busy, *p50, *p95, *p99].map(short);
            write!(f, "\n{name:<13}{count:>12}{busy:>11}{p50:>11}{p95:>11}{p99:>11}")?;
            if *group > 1 {
                write!(f, "  of groups of {group}")?;
            }
        }
        Ok(())
    }
}

/// Shows a time in about three digits, in a unit that suits.
fn short(time: Duration) -> String {
    format!("{time:.*?}", if time < Duration::from_micros(1) { 0 } else { 1 })
}
