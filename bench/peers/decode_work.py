"""The sizes of a config's model and the rows of a benchmark of decoding, for the peers of bench/versus-decode.

A file of work has a line "READ WRITE" for each row: the tokens of its prompt or input, and the tokens to generate.
"""
import argparse
import json
import resource
import time
import tomllib
from pathlib import Path


def arguments(description, weights):
    p = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--config", required=True, help="of Weft: its section [model] gives the sizes")
    p.add_argument("--vocab", type=int, default=0, help="in place of the config's")
    p.add_argument("--work", required=True, help='a file with a line "READ WRITE" for each row')
    p.add_argument("--weights", default="f32", choices=weights)
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--repeats", type=int, default=3, help="runs over all rows; the median counts")
    p.add_argument("--folder", required=True, help="for the files of the model, which are made once")
    return p


def sizes(o):
    model = tomllib.loads(Path(o.config).read_text())["model"]
    return model | ({"vocab": o.vocab} if o.vocab else {})


def rows(path):
    """Pairs (read, write)."""
    return [tuple(map(int, line.split())) for line in Path(path).read_text().splitlines() if line.strip()]


def ids(row, length, vocab):
    """Tokens of a row; they only have to be tokens."""
    return [3 + (7919 * i + 104729 * row) % (vocab - 3) for i in range(length)]


def timed(work):
    begin = time.perf_counter()
    result = work()
    return time.perf_counter() - begin, result


def fastest(variants, run):
    """The variant whose run is the fastest; every variant runs twice, and its first run does not count."""
    times = {}
    for variant in variants:
        run(variant)
        times[variant] = timed(lambda: run(variant))[0]
    return min(times, key=times.get)


def median_run(repeats, run):
    """(seconds, what run returned) of the run with the median time."""
    return sorted((timed(run) for _ in range(repeats)), key=lambda pair: pair[0])[repeats // 2]


def report(system, version, o, seconds, numbers):
    reads, writes = map(sum, zip(*rows(o.work)))
    print(json.dumps({"system": system, "version": version, "config": o.config, "weights": o.weights, "batch": o.batch,
                      "rows": len(rows(o.work)), "prompt_tokens": reads, "tokens": writes, "seconds": round(seconds, 5),
                      "tokens_per_s": round(writes / seconds, 2), **numbers, "repeats": o.repeats,
                      "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)}), flush=True)
