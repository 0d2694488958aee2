"""Writes the sounds of this folder, and prints some of their samples: with soundfile 0.14 (libsndfile), av 18.1 (FFmpeg), and
oggenc 1.4.2 and ffmpeg 5.1."""
import subprocess
from pathlib import Path

import av
import numpy as np
import soundfile

RATE, FRAMES = 16_000, 40_000
time = np.arange(FRAMES) / RATE
tone = (0.4 * np.sin(2 * np.pi * 440 * time) + 0.2 * np.sin(2 * np.pi * (300 + 200 * time) * time)).astype("float32")


def golden(name, samples):
    print(name, len(samples), [float(f"{x:.7}") for x in samples[1::1999]])


for name, form, kind in [("tone.mp3", "MP3", "MPEG_LAYER_III"), ("tone.ogg", "OGG", "VORBIS")]:
    soundfile.write(name, tone, RATE, format=form, subtype=kind, compression_level=0.9)
    golden(name, soundfile.read(name, dtype="float32")[0])
for name, form in [("tone.m4a", "ipod"), ("tone.aac", "adts")]:
    with av.open(name, "w", format=form) as file:
        stream = file.add_stream("aac", rate=RATE, layout="mono")
        stream.bit_rate = 16_000
        frame = av.AudioFrame.from_ndarray(tone[None], format="fltp", layout="mono")
        frame.sample_rate = RATE
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            file.mux(packet)
    with av.open(name) as file:
        golden(name, np.concatenate([frame.to_ndarray()[0] for frame in file.decode(audio=0)]))
# Channels that are not coupled, and more than two.
noise = np.random.default_rng(1).uniform(-0.5, 0.5, (8_000, 6))
for name, channels, options in [("stereo.ogg", 2, ["--advanced-encode-option", "disable_coupling"]), ("six.ogg", 6, [])]:
    soundfile.write("noise.wav", noise[:, :channels], RATE, subtype="PCM_16")
    subprocess.run(["oggenc", "--quiet", "--serial", "1", *options, "--quality", "1", "noise.wav", "--output", name], check=True)
    raw = subprocess.run(["ffmpeg", "-v", "error", "-i", name, "-f", "f32le", "-"], check=True, capture_output=True).stdout
    golden(name, np.frombuffer(raw, "<f4"))
Path("noise.wav").unlink()
