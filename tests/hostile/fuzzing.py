"""Coverage-guided fuzzing of the readers: libFuzzer's programs (preset `fuzz`), each for some minutes, from the seeds in fuzz/seeds."""

import os
import pathlib
import re
import shutil
import subprocess
import time

SEEDS = pathlib.Path(__file__).resolve().parent / "fuzz/seeds"
DICTIONARIES = SEEDS.parent / "dictionaries"
TIMEOUT_S = 5
RSS_MB = 2048
# SQLite and ELF are larger than text.
LONGEST = {"trace": 65536, "history": 65536, "manifest": 16384}
_FINDING = re.compile(r"(?:ERROR: (?:AddressSanitizer|LeakSanitizer|libFuzzer): (.*)|runtime error: (.*)|terminate called after throwing an instance of '(.*)')")


def names():
    return sorted(path.name for path in SEEDS.iterdir())


def fuzz(build, name, counts, options, folder, say):
    """`options.minutes` of one fuzzer; what ends it is kept in `folder`, and it goes on for what is left of its time."""
    program = build / f"bin/fuzz-{name}"
    if not program.exists():
        return counts.skip(name, f"{program} is not built")
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + 60 * options.minutes
    turn = 0
    while (left := int(deadline - time.monotonic())) > 0 or turn == 0:
        turn += 1
        code, output = run_fuzzer(program, name, corpus, folder, max(left, 1), options.seed + turn)
        executions = int((re.findall(r"stat::number_of_executed_units: +(\d+)", output) or re.findall(r"#(\d+)\t", output) or ["0"])[-1])
        coverage = (re.findall(r" cov: (\d+)", output) or ["?"])[-1]
        counts.tried(name, f"edges {coverage}" if turn == 1 else "after a finding", times=executions)
        if code == 0:
            break
        found = _FINDING.search(output)
        what = next(filter(None, found.groups())) if found else f"exit code {code}: {output[-200:]}"
        kept = (re.findall(r"Test unit written to (\S+)", output) or [""])[0]
        say(f"fuzz-{name}: {what[:150]}")
        counts.found(name, what[:300], f"{program} {kept}", kept)
        if turn >= 20:
            break
    shutil.rmtree(folder / "scratch", ignore_errors=True)
    return None


def run_fuzzer(program, name, corpus, folder, seconds, seed):
    dictionary = DICTIONARIES / f"{name}.dict"
    command = [program, corpus, SEEDS / name, f"-max_total_time={seconds}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={RSS_MB}",
               f"-malloc_limit_mb={RSS_MB}", f"-seed={seed}", f"-max_len={LONGEST.get(name, 8192)}", "-print_final_stats=1",
               f"-artifact_prefix={folder}/", "-verbosity=1"]
    if dictionary.exists():
        command.append(f"-dict={dictionary}")
    env = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1:handle_abort=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, errors="replace", check=False,
                          cwd=folder, timeout=seconds + 120)
    output = done.stdout + done.stderr
    (folder / "log.txt").write_text(output[-200_000:])
    return done.returncode, output
