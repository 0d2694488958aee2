"""What a line of a record says of the host, the programs and the packages."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = ["torch", "torchvision", "nvidia-dali-cuda130", "webdataset", "datasets", "litdata"]


def first_line(*command):
    """The first line that a program prints, if it is there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return None


def about(commit=None, host=None):
    """What all lines say of the host and the programs. Without a commit, that of this folder."""
    versions = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            pass
    gpu = first_line("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader")
    cpuinfo = Path("/proc/cpuinfo")
    cpus = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    cpu = next((line.split(":")[1].strip() for line in cpus if line.startswith("model name")), None)
    return {
        "commit": commit or first_line("git", "-C", str(HERE), "rev-parse", "--short", "HEAD"),
        "host": host,
        "gpu": gpu and gpu.replace(", ", ", driver "),
        "cpu": cpu,
        "threads": os.cpu_count(),
        "queues": os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "not set"),
        "versions": versions,
    }
