#!/usr/bin/env python3
"""A worker that speaks the protocol of harness/records/job.h and behaves as it is told.

The model's or a strategy's option `behaviour` says how, in the worker that the option `in` names (memory by
default, throughput, both). Peaks follow from the number of strategies, so that rows differ.
"""
import itertools
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

MiB = 1 << 20


def report(**line):
    descriptor = os.environ.get("PEAKBENCH_PROGRESS_FD")
    if descriptor:
        os.write(int(descriptor), (json.dumps(line) + "\n").encode())


def progress(job, pause=0.0):
    steps = job["steps"] + job["warmup"]
    report(phase="load", step=0, steps=steps, allocated_bytes=0, peak_bytes=0)
    for step in range(steps):
        for phase in ("forward", "backward", "optimizer_step"):
            report(phase=phase, step=step, steps=steps, allocated_bytes=64 * MiB, peak_bytes=96 * MiB)
            time.sleep(pause)


def memory(job):
    peak = 100 * MiB - 10 * MiB * (len(job["strategies"]) - 1)
    return {"peak_allocated_bytes": peak, "peak_requested_bytes": peak,
            "at_peak": {"parameter": 40 * MiB, "temporary": peak - 40 * MiB},
            "peak_phase": "optimizer_step", "peak_step": 1, "steps": job["steps"],
            "phases": {"build": {"peak_allocated_bytes": 40 * MiB, "peak_requested_bytes": 40 * MiB},
                       "optimizer_step": {"peak_allocated_bytes": peak, "peak_requested_bytes": peak}},
            "spaces": {"cpu": {"peak_allocated_bytes": peak, "peak_requested_bytes": peak}},
            "worker_peak_rss_bytes": 1}


def equivalence(job):
    found = dict(job["promise"], verdict="not_checked")
    if job["write_parameters_path"]:
        with open(job["write_parameters_path"], "w", encoding="utf-8") as file:
            file.write(job["case_id"])
    elif job["read_parameters_path"]:
        with open(job["read_parameters_path"], encoding="utf-8") as file:
            found.update(verdict="held", max_abs_difference=0.0, reason="read " + file.read())
    return found


def paced(job):
    """Step times as the options say: `slower` per cent, and `noise` per cent that differs from worker to worker, by a
    count kept in the case's folder; the same in every run."""
    options = {}
    for use in job["strategies"]:
        options.update({**use["options"], **use["selection"]["options"]})
    counter = os.path.join(os.path.dirname(job["result_path"]), "timed.count")
    count = 0
    if os.path.exists(counter):
        with open(counter, encoding="utf-8") as file:
            count = int(file.read())
    with open(counter, "w", encoding="utf-8") as file:
        file.write(str(count + 1))
    noise = options.get("noise", 0) / 100 * (-1, 1, 0)[count % 3]
    step = 2_000_000 * (1 + options.get("slower", 0) / 100) * (1 + noise)
    return [int(step) + 1000 * i for i in range(job["steps"])]


def good_result(job):
    result = {"status": "ok", "reason": "", "losses": [], "settings": {"threads": 1},
              "environment": {"libtorch": "fake"}}
    if job["mode"] == "memory":
        result.update(memory=memory(job), losses=[2.0, 1.5, 1.25], equivalence=equivalence(job))
    else:
        times = paced(job)
        result["throughput"] = {"step_ns": {"min": times[0], "median": times[len(times) // 2],
                                            "p90": times[-1], "count": len(times)},
                                "step_times_ns": times, "samples_per_second": 500.0 * job["batch_size"],
                                "clock": "steady_clock", "threads": 1}
    return result


def write(job, text):
    with open(job["result_path"], "w", encoding="utf-8") as file:
        file.write(text)


def behaviour(job):
    for use in [job["model"], *job["strategies"]]:
        options = {**use["options"], **use["selection"]["options"]}
        if options.get("behaviour") and options.get("in", "memory") in (job["mode"], "both"):
            return options["behaviour"]
    return "ok"


def progress_bytes(chunk, times=None):
    """Writes to the progress pipe without end, or so many times; what does not fit is dropped."""
    descriptor = int(os.environ["PEAKBENCH_PROGRESS_FD"])
    while times is None or times > 0:
        times = None if times is None else times - 1
        try:
            os.write(descriptor, chunk)
        except BlockingIOError:
            pass


def flood(chunk):
    """As a plugin's thread would, while the worker hangs and means to live on."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    progress_bytes(chunk)


def flood_beside(job):
    """As a plugin's thread would, while the worker does what it should: half lines, lines of any kind, and good ones."""
    chunks = [b"x" * 4096, b"\n" * 64, json.dumps({"phase": "forward", "step": 1, "steps": 2}).encode() + b"\n"]
    threading.Thread(target=lambda: [progress_bytes(chunk, 1) for chunk in itertools.cycle(chunks)], daemon=True).start()
    time.sleep(0.5)
    write(job, json.dumps(good_result(job)))
    os._exit(0)


def leave_daemon(job, wait=False):
    """A descendant in a session of its own, whose parent is gone."""
    if os.fork() == 0:
        os.setsid()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(600)
        print("child", child, flush=True)
        os._exit(0)
    os.wait()
    if wait:
        time.sleep(600)
    write(job, json.dumps(good_result(job)))


def flood_log(job):
    print("the first words")
    line = "x" * 1023 + "\n"
    for _ in range(64):
        sys.stdout.write(line * 1024)
    print("the last words", flush=True)
    os.abort()


def other_group(job):
    try:
        os.setpgid(0, os.getpgid(os.getppid()))
    except PermissionError:
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(600)


def spin(job):
    while True:
        pass


def child_eats_memory(job):
    if os.fork() == 0:
        os.setsid()
        held = []
        while True:
            held.append(bytearray(32 * MiB))
            time.sleep(0.02)
    time.sleep(600)


def deep_result(job):
    text = json.dumps({**good_result(job), "settings": {"a": "DEEP"}})
    write(job, text.replace('"DEEP"', '{"a":' * 200_000 + "1" + "}" * 200_000))


def sparse_result(job):
    with open(job["result_path"], "wb") as file:
        file.truncate(1 << 30)


def wordy_result(job):
    result = good_result(job)
    result["environment"]["card"] = "c" * (1 << 20)
    write(job, json.dumps({**result, "status": "unsupported", "reason": "no such layers " + "\u20ac" * (8 << 20)}, ensure_ascii=False))


def socket_as_result(job):
    folder, name = os.path.split(job["result_path"])
    os.chdir(folder)  # a socket's name is short
    socket.socket(socket.AF_UNIX).bind(name)


def delete_folder(job):
    shutil.rmtree(os.path.dirname(job["result_path"]))


HOSTILE = {
    "flood_lines": lambda job: flood(json.dumps({"phase": "forward", "step": 1, "steps": 2}).encode() + b"\n"),
    "flood_without_newline": lambda job: flood(b"x" * 4096),
    "flood_beside": flood_beside,
    "long_line": lambda job: [progress_bytes(b"\xff\x00" * 2048, 2048), time.sleep(0.1), progress_bytes(b"\n", 1), progress(job),
                              write(job, json.dumps(good_result(job)))],
    "odd_progress": lambda job: [progress_bytes(line + b"\n", 1) for line in (b'{"host_failure": ""}', b"[]", b"null", b'{"host_failure": 1}',
                                                                              b'{"phase": "\\u001b[2Jfor"}')]
                                + [time.sleep(0.1), write(job, json.dumps(good_result(job)))],
    "close_progress": lambda job: [os.close(int(os.environ["PEAKBENCH_PROGRESS_FD"])), time.sleep(0.1),
                                   write(job, json.dumps(good_result(job)))],
    "close_output": lambda job: [os.close(1), os.close(2), time.sleep(0.1), write(job, json.dumps(good_result(job)))],
    "stop": lambda job: os.kill(os.getpid(), signal.SIGSTOP),
    "kill_parent": lambda job: [os.kill(os.getppid(), signal.SIGKILL), time.sleep(600)],
    "daemon": leave_daemon,
    "daemon_and_hang": lambda job: leave_daemon(job, wait=True),
    "flood_log": flood_log,
    "other_group": other_group,
    "spin": spin,
    "child_eats_memory": child_eats_memory,
    "deep_result": deep_result,
    "sparse_result": sparse_result,
    "wordy_result": wordy_result,
    "pipe_as_result": lambda job: os.mkfifo(job["result_path"]),
    "folder_as_result": lambda job: os.makedirs(job["result_path"] + "/more"),
    "link_as_result": lambda job: os.symlink("/dev/null", job["result_path"]),
    "socket_as_result": socket_as_result,
    "delete_folder": delete_folder,
}


def misbehave(job, how):
    if how != "odd_progress":
        progress(job)
    print("about to", how, flush=True)
    if how in ("segfault", "abort", "kill", "terminate"):
        number = {"segfault": signal.SIGSEGV, "abort": signal.SIGABRT, "kill": signal.SIGKILL,
                  "terminate": signal.SIGTERM}[how]
        os.kill(os.getpid(), number)
        time.sleep(60)
    elif how in ("hang", "hang_hard"):
        if how == "hang_hard":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    elif how == "exit":
        sys.exit(3)
    elif how == "no_result":
        return
    elif how == "garbage":
        write(job, "\xff\x00 this is no JSON")
    elif how == "truncated":
        text = json.dumps(good_result(job))
        write(job, text[:len(text) // 2])
    elif how == "out_of_memory":
        write(job, json.dumps({"status": "out_of_memory", "reason": "asked 9.000 GiB with 1.000 GiB left",
                               "out_of_memory": {"requested_bytes": 9 << 30, "allocated_bytes": 7 << 30,
                                                 "limit_bytes": 8 << 30, "phase": "forward", "step": 0}}))
    elif how == "eat_memory":
        held = []
        while True:
            held.append(bytearray(32 * MiB))
            time.sleep(0.002)
    elif how == "crash_after_result":
        write(job, json.dumps(good_result(job)))
        sys.exit(5)
    elif how == "leave_child":
        child = subprocess.Popen(["sleep", "600"])
        print("child", child.pid, flush=True)
        write(job, json.dumps(good_result(job)))
    elif how in HOSTILE:
        HOSTILE[how](job)
    elif how == "bad_bytes":
        sys.stdout.buffer.write(b"\xff\xfe \x1b[31mred\n")
        sys.stdout.buffer.flush()
        sys.exit(4)
    elif how == "slow":
        progress(job, 0.15)
        write(job, json.dumps(good_result(job)))
    elif how == "host_failure":
        report(host_failure="the disk of the script is full")
        sys.exit(75)
    elif how == "exit_75":  # without a word: any program may use the number
        sys.exit(75)
    elif how == "worker_away":  # what an update of the installation does
        write(job, json.dumps(good_result(job)))
        os.rename(sys.argv[0], sys.argv[0] + ".away")
    elif how == "result_unreadable":
        os.mkdir(job["result_path"])
    elif how == "fill_disk":
        write(job, json.dumps(good_result(job)))
        with open(os.path.join(os.path.dirname(job["result_path"]), "large"), "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 16))
            except OSError as error:
                print(error)
    elif how == "no_effect":
        write(job, json.dumps({"status": "no_effect", "reason": "misbehave declares the slot schedule, which no step called"}))
    elif how == "unsupported":
        write(job, json.dumps({"status": "unsupported", "reason": "no such layers here"}))
    else:
        sys.exit(f"no behaviour {how}")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--try-device":
        print(sys.argv[2], "works")
        return 0
    if len(sys.argv) != 2 or sys.argv[1] == "--serve":  # it forks no others
        print("usage: peakbench-worker JOB.json", file=sys.stderr)
        return 2
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    how = behaviour(job)
    if how != "ok":
        misbehave(job, how)
        return 0
    progress(job)
    write(job, json.dumps(good_result(job)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
