"""What two runs of the same cases have in common: their records without times and without the workers' own memory."""

VOLATILE = ("wall_ns", "worker_peak_rss_bytes", "created", "command")


def without_volatile(value):
    if isinstance(value, dict):
        return {key: without_volatile(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [without_volatile(item) for item in value]
    return value
