"""The same spoilt files as in `files`, and many more, through the readers alone: one process reads them one after the other.

A process for each file would take an hour a reader. What ends the process (a signal, five seconds, four gibibytes) is counted, and it
is started again with the next file.
"""

import concurrent.futures
import os
import resource
import signal
import struct
import subprocess
import time

import fuzzing
import judge
from readers import all_readers, rng_of

QUICK = 120
CHUNK = 250


def attack(workplace, counts, options):
    if options.read_many is None:
        return counts.skip("all", "no peakbench-read-many was named (--read-many)")
    readers = [one for one in all_readers() if one.in_bulk and (not options.readers or one.name in options.readers)]
    count = options.count or QUICK
    starts = range(options.first, options.first + count, CHUNK)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        works = [pool.submit(good_ones, workplace, reader, counts, options) for reader in readers]
        for reader in readers:
            seeds = reader.seeds(workplace) + small_seeds(reader)
            works += [pool.submit(chunk, workplace, reader, seeds, counts, options, range(start, min(start + CHUNK, options.first + count)))
                      for start in starts]
        for work in works:
            work.result()


def good_ones(workplace, reader, counts, options):
    """What is spoilt must be good: a reader that refuses everything finds nothing."""
    with ReadMany(options.read_many, reader.in_bulk, workplace.environment()) as process:
        for name, data in small_seeds(reader):
            if (answer := process.read(data)) != "taken":
                counts.found(f"{reader.name}, reader", f"a good file is {answer}: {name}")


def small_seeds(reader):
    """Those of the fuzzers."""
    return [(path.name, path.read_bytes()) for path in sorted((fuzzing.SEEDS / reader.in_bulk).iterdir())]


class ReadMany:
    """The process, started when it is needed."""

    def __init__(self, program, reader, environment):
        self._command = [str(program), reader]
        self._environment = environment
        self._process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end()

    def _start(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (judge.ADDRESS_SPACE, judge.ADDRESS_SPACE))

        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                         env=self._environment, preexec_fn=limit)
        self._scratch = self._process.stdout.readline().decode().strip()

    def read(self, data):
        """What came of it: taken, refused, leaked ..., or the signal's name."""
        if self._process is None:
            self._start()
        try:
            self._process.stdin.write(struct.pack("<I", len(data)) + data)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self._process.stdout.readline().decode("utf-8", "replace").strip()
        return answer or self._end()

    def _end(self):
        if self._process is None:
            return ""
        for stream in (self._process.stdin, self._process.stdout):
            try:
                stream.close()
            except BrokenPipeError:
                pass
        code = self._process.wait()
        self._process = None
        if code != 0 and os.path.basename(os.path.dirname(self._scratch)).startswith("peakbench-"):
            # A process that was killed did not tidy up.
            if os.path.exists(self._scratch):
                os.unlink(self._scratch)
            os.rmdir(os.path.dirname(self._scratch))
        return signal.Signals(-code).name if code < 0 else f"exit {code}"


def chunk(workplace, reader, seeds, counts, options, numbers):
    row = f"{reader.name}, reader"
    scratch = workplace.root / f"scratch-{reader.in_bulk}-{numbers.start}"
    with ReadMany(options.read_many, reader.in_bulk, workplace.environment()) as process:
        for number in numbers:
            rng = rng_of(options.seed, reader.name, number)
            label, good = rng.choice(seeds)
            data = reader.spoil(rng, good, scratch)
            began = time.monotonic()
            answer = process.read(data)
            word = answer.split(" ")[0]
            counts.tried(row, word, time.monotonic() - began)
            if word not in ("taken", "refused"):
                kept = keep(options.keep, reader, number, data)
                what = f"hang: {answer}" if answer == "SIGPROF" else answer
                counts.found(row, what, f"seed {options.seed}, file {number}", kept)
    scratch.unlink(missing_ok=True)


def keep(folder, reader, number, data):
    if not folder:
        return ""
    os.makedirs(folder, exist_ok=True)
    kept = os.path.join(folder, f"{reader.in_bulk}-{number}")
    with open(kept, "wb") as file:
        file.write(data)
    return kept
