#!/usr/bin/env python3
"""Turns benches/records/*.jsonl into tables (standard output) and a plot.

    python3 benches/report.py today-a.jsonl today-b.jsonl --readme
    python3 benches/report.py benches/records/2026-11-21-h200.jsonl --svg benches/records/h200.svg
    python3 benches/report.py benches/records/2026-11-22-devices-h200-x4.jsonl --devices --svg plot.svg

Lines are those of `cargo bench --bench loaders -- --json` and of any peer that prints the same fields, or with `--devices` those of
the bench `devices`. Figures are medians over the rounds; lines with a field `code`, a commit, are those of that commit.

With `--readme`, of records of today.py: of each host the best setting of a loader, by the medians of its rounds; then the median of
the hosts, with the least and the most. The numbers of workers that were best are in brackets. A record without `host` is a host.
Needs nothing but Python.
"""
import argparse, json, re, statistics
from html import escape
from pathlib import Path

NAMES = {"pinned": "burn-pinned", "burn": "Burn's loader", "resident": "batch already there"}


def name(loader, code=None):
    found = NAMES.get(loader) or loader.split("+")[0].replace("pytorch", "PyTorch")
    return f"{found} at {code}" if code else found


def lines(paths):
    """What was measured."""
    for path in paths:
        with open(path) as file:
            for line in file:
                if not line.startswith("{"):
                    continue
                row = json.loads(line)
                if row.get("items_per_s") is None or "matmuls" not in row:
                    continue  # a run that failed, or text
                if row.get("epoch") == 0:
                    continue  # kernels are tuned in it
                yield {**row, "host": row.get("host") or path}


def read(paths):
    rows = {}
    for row in lines(paths):
        kinds = [row["case"], row.get("decoder"), row.get("part") if row.get("part") == "dali" else None]
        kinds.append(f"fetch {row['fetch']}" if row.get("fetch") else None)
        case = ", ".join(kind for kind in kinds if kind)
        key = (case, row["batch"], row["matmuls"], row["loader"], row["workers"], row.get("code"))
        rows.setdefault(key, []).append(row)
    return rows


def median(rows, field):
    values = [row[field] for row in rows if row.get(field) is not None]
    return statistics.median(values) if values else None


def show(value, digits=0):
    return "-" if value is None else f"{value:,.{digits}f}"


def best(rows):
    """Of each loader and case without a step, the number of workers with the most items a second."""
    found = {}
    for key, group in rows.items():
        case, _, matmuls, loader, _, code = key
        if matmuls is None and median(group, "items_per_s") > found.get((case, loader, code), (0, None))[0]:
            found[case, loader, code] = (median(group, "items_per_s"), key)
    return {key: rows[key] for _, key in found.values()}


def table(rows):
    print("| case | step | loader | workers | items/s | GB/s | ms per step | wait p50 us | first batch ms | slots MB | of link, fill |")
    print("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (case, batch, matmuls, loader, workers, code), group in sorted(rows.items(), key=lambda item: str(item[0])):
        share = [r["gb_per_s"] / min(r["link_gb_per_s"], r["fill_gb_per_s"]) for r in group
                 if r.get("link_gb_per_s") and r.get("fill_gb_per_s") and loader == "pinned" and not matmuls]
        step = "none" if matmuls is None else "light" if matmuls == 0 else f"{matmuls} matmuls"
        print(f"| {case}, {batch} | {step} | {name(loader, code)} | {workers} | {show(median(group, 'items_per_s'))} "
              f"| {show(median(group, 'gb_per_s'), 2)} | {show(median(group, 'step_ms'), 2)} "
              f"| {show(median(group, 'wait_us_p50'), 1)} | {show(median(group, 'first_batch_ms'), 1)} "
              f"| {show(median(group, 'pinned_mb'), 0)} | {show(statistics.median(share), 2) if share else '-'} |")


def bars(rows, case):
    """(label, GB/s) of a case without a step: the ceilings, then each loader at its best number of workers."""
    groups = {key: group for key, group in rows.items() if key[0] == case and key[2] is None}
    every = [row for group in groups.values() for row in group]
    best = {}
    for (_, _, _, loader, workers, code), group in groups.items():
        rate = median(group, "gb_per_s")
        if rate is not None and rate > best.get((loader, code), (0, 0))[0]:
            best[loader, code] = (rate, workers)
    found = [("raw link", median(every, "link_gb_per_s"))]
    found += [(f"{name(*key)}, {workers} workers", rate) for key, (rate, workers) in best.items()]
    return sorted(((label, rate) for label, rate in found if rate), key=lambda bar: -bar[1])


# The rows of the README, by the case and where JPEGs are decoded.
README = {
    ("ram-u8-224", None): "3 x 224 x 224 bytes from memory, batches of 256",
    ("small-u8-28", None): "28 x 28 bytes from memory, batches of 1024",
    ("rows-f32-20", None): "20 floats from memory, batches of 128",
    ("jpeg", "host"): "JPEGs from memory, decoded by the CPU (Burn's loader with our decoder)",
    ("tar", "host"): "photographs in tars, random crops, decoded by the CPU (PyTorch: webdataset)",
    ("tar", "device"): "the same, decoded by the GPU",
    ("parquet", "host"): "photographs in Parquet, random crops, decoded by the CPU (PyTorch: `datasets`)",
    ("parquet", "device"): "the same, decoded by the GPU",
}
COLUMNS = ["Burn", "PyTorch", "DALI", "burn-pinned"]


def column(row):
    """The column of a line, and the version if the line has it."""
    loader = row["loader"]
    if loader in ("pinned", "burn-pinned"):
        return "burn-pinned", None
    if loader == "burn":
        return "Burn", row.get("burn")
    version = row.get("version") if loader.startswith("dali-") else row.get("torch") or loader.partition(" ")[2]
    return "DALI" if loader.startswith("dali-") else "PyTorch", version and re.match(r"\d+\.\d+|", version)[0]


def readme(paths):
    rates, versions = {}, {}
    for row in filter(lambda row: not row["matmuls"], lines(paths)):
        case, decoder, (named, version) = row["case"], row.get("decoder"), column(row)
        if version:
            versions[named] = version
        if case.startswith("jpeg"):
            # `jpeg-pil` and `jpeg-tvio` are two ways to do the same. Burn's loader decodes on the CPU, and does not say so.
            case, decoder = "jpeg", "host" if named == "Burn" else decoder
        setting = tuple(str(row.get(field)) for field in ("loader", "case", "fetch", "batch", "code", "workers"))
        settings = rates.setdefault(((case, decoder), named), {}).setdefault(row["host"], {})
        settings.setdefault(setting, []).append(row["items_per_s"])
    print("| | " + " | ".join(f"{named} {versions.get(named, '')}".strip() for named in COLUMNS) + " |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for case, title in README.items():
        print(f"| {title} | " + " | ".join(cell(rates.get((case, named))) for named in COLUMNS) + " |")


def cell(hosts):
    """The median of the hosts' best settings, the least and the most, and these settings' numbers of workers."""
    if not hosts:
        return "-"
    best = [max((statistics.median(found), setting) for setting, found in settings.items()) for settings in hosts.values()]
    rates, workers = [rate for rate, _ in best], sorted({int(setting[-1]) for _, setting in best})
    short = lambda rate: f"{float(f'{rate:.3g}'):,.0f}"
    spread = f", {short(min(rates))} to {short(max(rates))}" if len(rates) > 1 else ""
    return f"{short(statistics.median(rates))} ({', '.join(map(str, workers))}){spread}"


def devices(paths):
    """(label, GB/s) of the bench `devices`, for each number of GPUs: the links, and the most that one loader gave."""
    found = [json.loads(line) for path in paths for line in Path(path).read_text().splitlines()]
    rows = [row for row in found if row["case"] in ("links", "ram")]
    found = []
    for count in sorted({row["devices"] for row in rows}):
        gpus = f"{count} GPU{'s' if count > 1 else ''}"
        rates = {}
        for row in rows:
            if row["devices"] == count:
                rates.setdefault((row["case"], row["workers"], row.get("batch")), []).append(row["gb_per_s"])
        links = [statistics.median(rate) for (case, *_), rate in rates.items() if case == "links"]
        ram = [(statistics.median(rate), *loader) for (case, *loader), rate in rates.items() if case == "ram"]
        found += [(f"raw links, {gpus}", rate) for rate in links]
        if ram:
            rate, workers, batch = max(ram, key=lambda loader: loader[0])
            batches = "" if batch in (None, 256) else f", batches of {batch}"
            found.append((f"burn-pinned, {gpus}, {workers} workers{batches}", rate))
    return found


def plot(found, title):
    width, height, left, line = 760, 70 + 34 * len(found), 230, 34
    top = max(rate for _, rate in found)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="14">',
           f'<rect width="{width}" height="{height}" fill="#fff"/>',
           f'<text x="16" y="30" font-size="17" font-weight="600">{escape(title)}</text>']
    for nth, (label, rate) in enumerate(found):
        y, long = 52 + nth * line, (width - left - 90) * rate / top
        colour = "#d9480f" if label.startswith("burn-pinned") else "#adb5bd" if label.startswith("raw link") else "#4c6ef5"
        out += [f'<text x="{left - 10}" y="{y + 17}" text-anchor="end">{escape(label)}</text>',
                f'<rect x="{left}" y="{y}" width="{long:.1f}" height="24" rx="3" fill="{colour}"/>',
                f'<text x="{left + long + 8:.1f}" y="{y + 17}">{rate:.1f} GB/s</text>']
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+")
    parser.add_argument("--svg")
    parser.add_argument("--case", default="ram-u8-224")
    parser.add_argument("--short", action="store_true", help="no step, and the best number of workers")
    parser.add_argument("--readme", action="store_true", help="the table of the README, of several hosts")
    parser.add_argument("--title", default="256 images of 3 x 224 x 224 bytes a batch, from host memory to the GPU")
    parser.add_argument("--devices", action="store_true", help="a record of the bench `devices`; needs --svg")
    args = parser.parse_args()
    if args.devices and not args.svg:
        parser.error("--devices needs --svg")
    if args.devices:
        title = "One loader for several GPUs: 256 images of 3 x 224 x 224 bytes a batch, GB/s together"
        with open(args.svg, "w") as file:
            file.write(plot(devices(args.records), title))
        return
    if args.readme:
        return readme(args.records)
    rows = read(args.records)
    table(best(rows) if args.short else rows)
    if args.svg:
        with open(args.svg, "w") as file:
            file.write(plot(bars(rows, args.case), args.title))


if __name__ == "__main__":
    main()
