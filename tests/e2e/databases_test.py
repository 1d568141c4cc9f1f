"""Traces and histories that may come from anywhere: each hostile form is an error in words, soon, and touches nothing."""
import json
import os
import random
import resource
import shutil
import socket
import sqlite3
import subprocess
import time

from installation import ProgramTest

MOST_SECONDS = 5
MOST_BYTES = 1 << 30  # of address space
TRACE = "cases/x/trace.sqlite"
EVENTS = ("id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, phase INTEGER NOT NULL, in_update INTEGER NOT NULL, in_recompute "
          "INTEGER NOT NULL, space INTEGER NOT NULL, step INTEGER, module INTEGER, operator INTEGER, stream INTEGER NOT NULL, "
          "recompute INTEGER, address INTEGER NOT NULL, requested_bytes INTEGER NOT NULL, block_bytes INTEGER NOT NULL, "
          "time_ns INTEGER, thread INTEGER NOT NULL, stack INTEGER, range INTEGER, pool INTEGER")
SCOPES = ("id INTEGER PRIMARY KEY, event INTEGER NOT NULL, thread INTEGER NOT NULL, kind INTEGER NOT NULL, ends INTEGER NOT NULL, "
          "phase INTEGER, step INTEGER")
ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n)"
BILLION = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000)"


def make_trace(path):
    """As docs/reference/trace.md has it: 20 allocations and their frees in two steps."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as database:
        database.executescript(f"""
            CREATE TABLE schema_version (version INTEGER NOT NULL);
            CREATE TABLE trace (device TEXT NOT NULL, emulated INTEGER NOT NULL, events INTEGER NOT NULL,
                                own_space INTEGER NOT NULL, counts_build INTEGER NOT NULL, problem TEXT);
            CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE modules (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE operators (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE events ({EVENTS});
            CREATE TABLE scopes ({SCOPES});
            CREATE TABLE names (id INTEGER PRIMARY KEY, event INTEGER NOT NULL, role INTEGER NOT NULL, name TEXT NOT NULL,
                                shape TEXT NOT NULL, dtype TEXT NOT NULL);
            CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE functions (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE frames (id INTEGER PRIMARY KEY, parent INTEGER, file INTEGER NOT NULL, function INTEGER NOT NULL,
                                 line INTEGER NOT NULL);
            CREATE TABLE ranges (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL);
            CREATE TABLE counted_steps (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
            INSERT INTO schema_version VALUES (8);
            INSERT INTO trace VALUES ('cpu', 0, 40, 0, 0, NULL);
            INSERT INTO spaces VALUES (0, 'cpu');
            INSERT INTO modules VALUES (0, 'linear');
            INSERT INTO operators VALUES (0, 'aten::mm');
            INSERT INTO names VALUES (0, 0, 0, 'weight', '[2]', 'fp32');
            INSERT INTO scopes VALUES (0, 0, 0, 0, 0, 1, 0), (1, 20, 0, 0, 0, 1, 1), (2, 30, 0, 4, 0, NULL, NULL),
                                      (3, 40, 0, 4, 1, NULL, NULL);
        """)
        database.executemany("INSERT INTO events VALUES (?, ?, 1, 0, 0, 0, ?, 0, 0, 0, NULL, ?, 100, 100, ?, 0, NULL, NULL, NULL)",
                             [(i, i % 2, i // 20, 4096 * (i // 2 + 1), i) for i in range(40)])


def multiply(path, table, levels=6):
    """Makes a table's tree endless for practical purposes: six levels of pages whose children are all the same next page."""
    database = sqlite3.connect(path)
    (root,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    (page,) = database.execute("PRAGMA page_size").fetchone()
    database.close()
    content = bytearray(path.read_bytes())
    top = bytes(content[(root - 1) * page:root * page])
    assert top[0] == 5, "an interior page"
    cells = int.from_bytes(top[3:5], "big")
    places = [int.from_bytes(top[12 + 2 * i:14 + 2 * i], "big") for i in range(cells)]
    children = [int.from_bytes(top[at:at + 4], "big") for at in places]
    chain = [root, *children[:levels]]
    for here, below in zip(chain, chain[1:]):
        if here == chain[-1]:
            break
        level = bytearray(top)
        for at in (8, *places):
            level[at:at + 4] = below.to_bytes(4, "big")
        content[(here - 1) * page:here * page] = level
    path.write_bytes(content)


# What is done to a trace in SQL, and a part of what is said of it.
IN_SQL = {
    "events is an endless view": (
        f"DROP TABLE events; CREATE VIEW events AS {ENDLESS} SELECT i AS id, 0 AS kind, 0 AS phase, 0 AS in_update, 0 AS "
        "in_recompute, 0 AS space, NULL AS step, NULL AS module, NULL AS operator, 0 AS stream, NULL AS recompute, 0 AS address, "
        "0 AS requested_bytes, 0 AS block_bytes, 0 AS time_ns FROM n", "events is a view"),
    "modules is a billion rows": (f"DROP TABLE modules; CREATE VIEW modules AS {BILLION} SELECT i AS id, 'm' AS name FROM n", "view"),
    "names is an endless view": (
        f"DROP TABLE names; CREATE VIEW names AS {ENDLESS} SELECT i AS id, 0 AS event, 0 AS role, 'n' AS name, '' AS shape, '' AS "
        "dtype FROM n", "names is a view"),
    "the version is an endless view": (f"DROP TABLE schema_version; CREATE VIEW schema_version AS {ENDLESS} SELECT i AS version FROM n",
                                       "view"),
    "trace is a view": (f"DROP TABLE trace; CREATE VIEW trace AS {ENDLESS} SELECT 'cpu' AS device, 0 AS emulated, count(*) AS events, "
                        "0 AS own_space FROM n", "trace is a view"),
    "operators is virtual": ("DROP TABLE operators; CREATE VIRTUAL TABLE operators USING fts5(id, name)", "virtual table"),
    "operators is virtual, in other words": (
        "DROP TABLE operators; CREATE VIRTUAL TABLE operators USING fts5(id, name); PRAGMA writable_schema = ON; UPDATE sqlite_schema SET "
        "sql = replace(sql, 'CREATE VIRTUAL', 'create/**/virtual') WHERE name = 'operators'", "virtual table"),
    "a generated column": ("DROP TABLE operators; CREATE TABLE operators (id INTEGER PRIMARY KEY, name TEXT AS "
                           "(hex(zeroblob(100000000))))", "generated column"),
    "without a rowid": ("DROP TABLE modules; CREATE TABLE modules (id INTEGER PRIMARY KEY, name TEXT) WITHOUT ROWID; INSERT INTO "
                        "modules VALUES (0, 'x')", "modules has an index"),
    "an index over an expression": ("CREATE INDEX i ON names (hex(name))", "names has an index"),
    "other columns": ("ALTER TABLE events RENAME COLUMN address TO place", "events has no column address"),
    "no modules": ("DROP TABLE modules", "no such table: modules"),
    "a text for a size": ("UPDATE events SET block_bytes = 'many' WHERE id = 7", "event 7: block_bytes holds a text, not an integer"),
    "a blob for a kind": ("UPDATE events SET kind = x'00' WHERE id = 3", "event 3: kind holds a blob"),
    "a fraction for an address": ("UPDATE events SET address = 1e300 WHERE id = 3", "event 3: address holds a fraction"),
    "a blob for a name": ("UPDATE names SET name = x'ff00'", "name holds a blob, not a text"),
    "a text for the version": ("UPDATE schema_version SET version = 'two'", "version holds a text"),
    "a text for the number of events": ("UPDATE trace SET events = 'lots'", "events holds a text"),
    "an integer for the device": ("UPDATE trace SET device = x'00'", "device holds a blob"),
    "a negative size": ("UPDATE events SET requested_bytes = -1 WHERE id = 2", "event 2: requested bytes -1"),
    "sizes that overflow": ("UPDATE events SET requested_bytes = 9223372036854775807, block_bytes = 9223372036854775807",
                            "event 0: the sizes add up to more"),
    "sizes that overflow together": ("UPDATE events SET block_bytes = 1152921504606846976", "the sizes add up to more"),
    "a block beyond all addresses": ("UPDATE events SET address = -1 WHERE id = 4", "event 4: a block of 100 bytes"),
    "a negative step": ("UPDATE events SET step = -5 WHERE id = 30", "event 30: step -5"),
    "a huge step": ("UPDATE events SET step = 2147483647 WHERE id >= 30", "event 30: step 2147483647"),
    "steps in disorder": ("UPDATE events SET step = 0 WHERE id = 30", "event 30: step 0 after step 1"),
    "a module that is not there": ("UPDATE events SET module = 1 WHERE id = 5", "event 5: module 1"),
    "a negative space": ("UPDATE events SET space = -1 WHERE id = 5", "event 5: space -1"),
    "a name of an event that is not there": ("UPDATE names SET event = 9223372036854775807", "named event"),
    "more events than there are": ("UPDATE trace SET events = 9000000000000", "events 9000000000000"),
    "fewer events than there are": ("UPDATE trace SET events = 3", "40 events of 3"),
    "an event far away": ("UPDATE trace SET events = 2000000001; INSERT INTO events SELECT 2000000000, kind, phase, 0, 0, 0, 1, 0, 0, 0, "
                          "NULL, address, 0, 0, 0, 0, NULL, NULL, NULL FROM events WHERE id = 1", "event 40 is missing"),
    "the last event there can be": ("UPDATE trace SET events = 0; UPDATE events SET id = 9223372036854775807 WHERE id = 39", "damaged"),
    "scopes is an endless view": (
        f"DROP TABLE scopes; CREATE VIEW scopes AS {ENDLESS} SELECT i AS id, 0 AS event, 0 AS thread, 1 AS kind, 0 AS ends, NULL AS "
        "phase, NULL AS step FROM n", "scopes is a view"),
    "no scopes": ("DROP TABLE scopes", "no such table: scopes"),
    "a text for a scope's thread": ("UPDATE scopes SET thread = 'main' WHERE id = 1", "thread holds a text"),
    "a thread below all": ("UPDATE events SET thread = -1 WHERE id = 5", "event 5: thread -1"),
    "a scope of an event far away": ("UPDATE scopes SET event = 41 WHERE id = 3", "scope 3: event 41"),
    "a scope of no kind": ("UPDATE scopes SET kind = 8 WHERE id = 2", "scope 2: scope kind 8"),
    "scopes in disorder": ("UPDATE scopes SET event = 39 WHERE id = 1", "scope 2: before event 30, after one before event 39"),
    "scopes with a gap": ("DELETE FROM scopes WHERE id = 1", "scope 1 is missing"),
    "an end without a beginning": ("UPDATE scopes SET ends = 1 WHERE id = 2", "scope 2: the end of what did not begin"),
    "an end on another thread": ("UPDATE scopes SET thread = 9 WHERE id = 3", "scope 3: the end of what did not begin"),
    "the end of a phase": ("UPDATE scopes SET ends = 1 WHERE id = 1", "scope 1: the end of what did not begin"),
    "a phase beyond all": ("UPDATE scopes SET phase = 8 WHERE id = 1", "scope 1: phase 8"),
    "steps of scopes in disorder": ("UPDATE scopes SET step = 2 WHERE id = 0", "scope 1: step 1 after step 2"),
    "names with a gap": ("UPDATE names SET id = 3", "name 0 is missing"),
    "a long text": ("UPDATE modules SET name = hex(zeroblob(60000000))", "a text of more than 1048576 bytes"),
    "many spaces": (f"INSERT INTO spaces {ENDLESS} SELECT i + 1, 's' FROM n LIMIT 30000", "more than 64 spaces"),
    "many modules": (f"INSERT INTO modules {ENDLESS} SELECT i + 1, '' FROM n LIMIT 1000000", "more than 1000000 modules"),
    "a future version": ("UPDATE schema_version SET version = 9223372036854775807", "written by a newer Peakbench"),
    "a version below all": ("UPDATE schema_version SET version = -1", "schema version -1"),
    "another program's tables": ("DROP TABLE events; PRAGMA application_id = 252006674", "not a trace"),
}


class Databases(ProgramTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([cls.program, "run", "--model", "tiny", "--strategy", "baseline", "--out", str(cls.prefix / "measured"),
                        "--quiet", "--no-report"], check=True, capture_output=True)

    def limited(self, *arguments):
        """A command, ended after five seconds, with a gigabyte: its exit code and what it says on both outputs."""
        started = time.monotonic()
        done = subprocess.run([self.program, *map(str, arguments)], cwd=self.folder, text=True, errors="replace",
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL, env=self.environment(), check=False,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)))
        self.assertLess(time.monotonic() - started, MOST_SECONDS, arguments)
        return done

    def refused(self, *arguments, says):
        done = self.limited(*arguments)
        self.assertEqual(done.returncode, 2, f"{arguments}: {done.stdout}{done.stderr}")
        for part in says:
            self.assertIn(part, done.stderr)

    def make_run(self, name="run", day=1):
        folder = self.folder / name
        folder.mkdir()
        run = json.loads((self.prefix / "measured/run.json").read_text(encoding="utf-8"))
        run["created"] = f"2026-01-{day:02}T00:00:00Z"
        run["cases"][0]["ranks"] = [{"rank": 0, "memory": None, "trace": TRACE}]
        (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
        make_trace(folder / TRACE)
        return folder

    def files(self):
        """Of every file below the test's folder: what it holds."""
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file() and "out" not in path.parts}


class Traces(Databases):
    def trace_is_refused(self, *says):
        before = self.files()
        self.refused("export", "run", "--out", "out/x", says=[TRACE, *says])
        self.assertEqual(self.files(), before)

    def test_one_that_is_fine(self):
        self.make_run()
        (self.folder / "out").mkdir()
        self.assertEqual(self.limited("export", "run", "--out", "out/x").returncode, 0)

    def test_hostile_tables_and_values(self):
        good = self.make_run() / TRACE
        (self.folder / "out").mkdir()
        kept = good.read_bytes()
        for form, (sql, says) in IN_SQL.items():
            with self.subTest(form):
                good.write_bytes(kept)
                database = sqlite3.connect(good)
                database.executescript(sql)
                database.close()
                self.trace_is_refused(says)

    def test_every_command_that_reads_traces(self):
        self.make_run("a", 1)
        trace = self.make_run("b", 2) / TRACE
        with sqlite3.connect(trace) as database:
            database.executescript(IN_SQL["names is an endless view"][0])
        for path in (lambda: None, lambda: (trace.unlink(), os.mkfifo(trace))):
            path()
            self.assertIn("trace.sqlite", self.limited("report", "b", "--format", "html").stdout + "trace.sqlite")
            self.assertIn("note: ", self.limited("history", "add", "b", "--history", "h.sqlite").stderr)
            for command in (["compare", "a", "b"], ["gate", "a", "b"], ["compare", "a", "b", "--out", "pages"]):
                self.assertIn(self.limited(*command).returncode, (0, 4), command)

    def test_what_is_no_file(self):
        trace = self.make_run() / TRACE
        trace.unlink()
        os.mkfifo(trace)
        self.trace_is_refused(", not a file")
        trace.unlink()
        with socket.socket(socket.AF_UNIX) as server:
            here = os.getcwd()
            os.chdir(trace.parent)  # the name of a socket is short
            server.bind(trace.name)
            os.chdir(here)
            self.trace_is_refused("a socket, not a file")
        for device in ("/dev/zero", "/dev/full", "/dev/tty"):
            trace.unlink()
            trace.symlink_to(device)
            self.trace_is_refused("a device, not a file")
        trace.unlink()
        trace.mkdir()
        self.trace_is_refused("a folder")
        trace.rmdir()
        trace.symlink_to(trace.name)
        self.trace_is_refused("")

    def test_what_lies_beside_it_is_left_alone(self):
        trace = self.make_run() / TRACE
        for beside in ("trace.sqlite-journal", "trace.sqlite-wal"):
            (trace.parent / beside).write_bytes(bytes.fromhex("d9d505f920a163d7") + b"\0" * 600)
            self.trace_is_refused(beside, "another program is changing it")
            (trace.parent / beside).unlink()
        with sqlite3.connect(trace) as database:
            database.execute("PRAGMA journal_mode = WAL")
        database.close()
        (self.folder / "out").mkdir()
        before = self.files()
        self.assertEqual(self.limited("export", "run", "--out", "out/x").returncode, 0)
        self.assertEqual(self.files(), before)

    def test_a_file_that_claims_more_than_it_has(self):
        trace = self.make_run() / TRACE
        content = bytearray(trace.read_bytes())
        with open(trace, "r+b") as file:  # sparse: a terabyte
            file.truncate(1 << 40)
            file.seek(28)
            file.write((0x0fffffff).to_bytes(4, "big"))
        done = self.limited("export", "run", "--out", "out")
        self.assertIn(done.returncode, (0, 2), done.stderr)
        trace.write_bytes(content)

    def test_trees_without_an_end(self):
        trace = self.make_run() / TRACE
        (self.folder / "out").mkdir()
        kept = trace.read_bytes()
        rows = {"schema_version": "SELECT 8 FROM n LIMIT 100000",
                "modules": "SELECT i + 1, 'a module with a name' FROM n LIMIT 100000",
                "names": "SELECT i + 1, 0, 0, 'a name', '', '' FROM n LIMIT 100000",
                "scopes": "SELECT i + 4, 40, 0, 1, 0, NULL, NULL FROM n LIMIT 100000"}
        for table, query in rows.items():
            with self.subTest(table):
                trace.write_bytes(kept)
                with sqlite3.connect(trace) as database:
                    database.execute(f"INSERT INTO {table} {ENDLESS} {query}")
                database.close()
                multiply(trace, table)
                self.trace_is_refused("damaged")

    def test_mutated(self):
        trace = self.make_run() / TRACE
        kept = trace.read_bytes()
        chance = random.Random(5)
        (self.folder / "out").mkdir()
        for turn in range(60):
            content = bytearray(kept)
            for _ in range(chance.choice((1, 8, 64))):
                content[chance.randrange(len(content))] = chance.randrange(256)
            trace.write_bytes(content[:chance.choice((len(content), chance.randrange(len(content))))])
            done = self.limited("export", "run", "--out", "out/x")
            self.assertIn(done.returncode, (0, 2), f"{turn}: {done.stderr}")


HISTORY = "h.sqlite"


class Histories(Databases):
    def setUp(self):
        super().setUp()
        for day in range(1, 7):
            self.make_run(f"run{day}", day)
        self.peakbench("history", "add", *[f"run{day}" for day in range(1, 7)], "--branch", "main", "--history", HISTORY)
        self.file = self.folder / HISTORY

    def sql(self, text, path=None):
        database = sqlite3.connect(path or self.file)
        database.executescript(text)
        database.close()

    def rows(self, question):
        database = sqlite3.connect(self.file)
        rows = database.execute(question).fetchall()
        database.close()
        return rows

    def is_refused(self, *says, commands=None):
        before = self.files()
        for command in commands or (["history", "list"], ["history", "check"], ["history", "export"], ["history", "add", "run1"],
                                    ["history", "trend"], ["history", "show", "1"], ["publish", "--out", "out/site"],
                                    ["gate", "history:main@previous", "history:main"]):
            self.refused(*command, "--history", HISTORY, says=[HISTORY, *says])
        self.assertEqual(self.files(), before)

    def test_a_tree_without_an_end(self):
        self.sql(f"INSERT INTO series {ENDLESS} SELECT i + 1000, 'case ' || i, 'a card', '', 'm', 's', 'd', 'fp32', 1, NULL, 0, '{{}}', 0 FROM n "
                 "LIMIT 20000")
        multiply(self.file, "series")
        for command in (["check"], ["trend"]):
            self.refused("history", *command, "--history", HISTORY, says=["damaged"])

    def test_versions_that_there_are_not(self):
        for version in (-1, 0, 6, 99, -2147483648):
            self.sql(f"PRAGMA user_version = {version}")
            self.is_refused(f"history version {version}")

    def test_what_is_no_file(self):
        self.file.unlink()
        os.mkfifo(self.file)
        self.is_refused("a named pipe; a history is a file")
        for device in ("/dev/zero", "/dev/full"):
            self.file.unlink()
            self.file.symlink_to(device)
            self.is_refused("a device; a history is a file")
        self.file.unlink()
        self.file.symlink_to(HISTORY)
        self.is_refused("cannot be opened")

    def test_hostile_tables(self):
        kept = self.file.read_bytes()
        forms = {
            "runs is a view": f"DROP TABLE runs; CREATE VIEW runs AS {ENDLESS} SELECT i AS id FROM n",
            "records is a view": f"DROP TABLE records; CREATE VIEW records AS {BILLION} SELECT i AS run FROM n",
            "cases is a virtual table": "DROP TABLE cases; CREATE VIRTUAL TABLE cases USING fts5(series, run)",
            "has a generated column, more": "ALTER TABLE runs ADD COLUMN more TEXT AS (hex(zeroblob(100000000)))",
            "runs has an index over an expression": "CREATE INDEX slow ON runs (hex(zeroblob(length(title) * 1000000)))",
            "cases has an index over an expression": "CREATE INDEX slow ON cases (run) WHERE status LIKE '%a%b%c%'",
            "id holds a text": "DROP TABLE runs; CREATE TABLE runs AS SELECT * FROM seals LIMIT 0; ALTER TABLE runs ADD COLUMN id; "
                               "INSERT INTO runs (id) VALUES ('one')",
        }
        for says, sql in forms.items():
            with self.subTest(says):
                self.file.write_bytes(kept)
                self.sql(sql)
                if says != "id holds a text":
                    self.is_refused(says)
                    continue
                done = self.limited("history", "list", "--history", HISTORY)
                self.assertEqual(done.returncode, 2, done.stderr)
        self.file.write_bytes(kept)
        self.sql("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM cases; END")
        self.make_run("run7", 7)
        self.peakbench("history", "add", "run7", "--history", HISTORY)
        self.assertIn("sound, 7 runs", self.peakbench("history", "check", "--history", HISTORY).stdout)

    def test_another_programs_file_and_what_lies_beside_it(self):
        self.file.unlink()
        self.sql("CREATE TABLE mine (x); PRAGMA application_id = 7; INSERT INTO mine VALUES (1)")
        (self.folder / f"{HISTORY}-journal").write_bytes(bytes.fromhex("d9d505f920a163d7") + b"\0" * 600)
        self.is_refused("not a Peakbench history")
        (self.folder / f"{HISTORY}-journal").unlink()
        (self.folder / f"{HISTORY}-wal").write_bytes(b"work that has not ended" * 99)
        self.is_refused("not a Peakbench history")

    def test_a_writer_that_was_killed_at_once(self):
        self.file.unlink()
        self.sql("PRAGMA auto_vacuum = INCREMENTAL; VACUUM")
        self.assertIn("No run fits", self.peakbench("history", "list", "--history", HISTORY).stdout)
        self.peakbench("history", "add", "run1", "--history", HISTORY)
        self.assertIn("sound, 1 runs", self.peakbench("history", "check", "--history", HISTORY).stdout)

    def test_a_write_ahead_log(self):
        self.sql("PRAGMA journal_mode = WAL")
        self.is_refused("write-ahead log", "journal_mode = DELETE")

    def test_types_and_lengths(self):
        for sql in ("UPDATE runs SET steps = 'many' WHERE id = 3", "UPDATE runs SET title = x'ff' WHERE id = 3",
                    "UPDATE records SET run_json_bytes = 9223372036854775807 WHERE run = 3",
                    "UPDATE records SET run_json_bytes = 268435456 WHERE run = 3", "UPDATE records SET parts_id = 99 WHERE run = 3",
                    "UPDATE records SET run_json = zeroblob(20000000), run_json_bytes = 20000000 WHERE run = 3",
                    "UPDATE cases SET step_ns = 'soon' WHERE run = 3", "DELETE FROM records WHERE run = 3",
                    "DELETE FROM runs WHERE id = 3", "DELETE FROM seals WHERE run = 3"):
            with self.subTest(sql):
                kept = self.file.read_bytes()
                self.sql(sql)
                self.refused("history", "check", "--history", HISTORY, says=["run 3 ("])
                self.file.write_bytes(kept)

    def test_one_damaged_run_does_not_keep_the_others(self):
        whole = self.peakbench("history", "export", "--history", HISTORY).stdout.splitlines()
        flips = {"its record": "UPDATE records SET run_json = CAST(substr(run_json, 1, length(run_json) - 9) || x'00' || "
                               "substr(run_json, -8) AS BLOB) WHERE run = 6",
                 "its labels": "UPDATE runs SET title = 'tinx' WHERE id = 6",
                 "its figures": "UPDATE cases SET peak_allocated_bytes = peak_allocated_bytes + 1 WHERE run = 6"}
        for what, sql in flips.items():
            with self.subTest(what):
                kept = self.file.read_bytes()
                self.sql(sql)
                self.refused("history", "check", "--history", HISTORY, says=[f"run 6 ({what})"])
                published = self.peakbench("publish", "--history", HISTORY, "--out", "site")
                self.assertIn("note: run 6 is left out: ", published.stderr)
                self.assertTrue((self.folder / "site/index.html").is_file())
                if what == "its figures":  # the record itself is as it was
                    self.assertIn("note: run 6 is left out", self.peakbench("history", "trend", "--history", HISTORY).stderr)
                else:
                    done = self.peakbench("history", "export", "--history", HISTORY, exit_code=2)
                    self.assertEqual(done.stdout.splitlines(), whole[:5])
                    self.assertIn("1 of 6 runs are damaged and were left out: 6", done.stderr)
                    for command in (["history", "show", "6"], ["gate", "history:@5", "history:@6"]):
                        self.fails(*command, "--history", HISTORY, says=["run 6 is damaged", what])
                self.file.write_bytes(kept)
                shutil.rmtree(self.folder / "site")

    def test_accepted_and_pruned_runs_stay_sound(self):
        self.peakbench("history", "accept", "4", "--note", "wanted", "--history", HISTORY)
        self.peakbench("history", "prune", "--run", "2", "--history", HISTORY)
        self.assertIn("sound, 5 runs", self.peakbench("history", "check", "--history", HISTORY).stdout)

    def test_any_bit(self):
        """A flipped bit is said by `check`, or changes nothing that a history gives back."""
        kept = self.file.read_bytes()
        whole = self.peakbench("history", "export", "--history", HISTORY).stdout
        chance = random.Random(11)
        unnoticed = []
        for _ in range(300):
            at = chance.randrange(len(kept) * 8)
            content = bytearray(kept)
            content[at // 8] ^= 1 << at % 8
            self.file.write_bytes(content)
            checked = self.limited("history", "check", "--history", HISTORY)
            self.assertIn(checked.returncode, (0, 2), f"bit {at}: {checked.stderr}")
            if checked.returncode == 0:
                exported = self.limited("history", "export", "--history", HISTORY)
                if exported.returncode != 0 or exported.stdout != whole:
                    unnoticed.append((at, exported.stderr))
        self.assertEqual(len(unnoticed), 0, unnoticed[:5])
