// The tables and views of trace.sqlite; docs/reference/trace.md explains them. For the room's own
// use.
#pragma once

namespace peakbench::trace {

inline constexpr const char* kTables = R"(
CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE trace (device TEXT NOT NULL, emulated INTEGER NOT NULL, events INTEGER NOT NULL,
                    own_space INTEGER NOT NULL, problem TEXT,
                    counts_build INTEGER NOT NULL);
CREATE TABLE counted_steps (id INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL);
CREATE TABLE event_kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE phases (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE roles (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE scope_kinds (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE spaces (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE modules (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE operators (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE functions (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE ranges (id INTEGER PRIMARY KEY, parent INTEGER, name TEXT NOT NULL);
CREATE TABLE frames (
  id INTEGER PRIMARY KEY, parent INTEGER, file INTEGER NOT NULL, function INTEGER NOT NULL,
  line INTEGER NOT NULL);
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  kind INTEGER NOT NULL, phase INTEGER NOT NULL, in_update INTEGER NOT NULL,
  in_recompute INTEGER NOT NULL, space INTEGER NOT NULL, step INTEGER, module INTEGER,
  operator INTEGER, stream INTEGER NOT NULL, recompute INTEGER, address INTEGER NOT NULL,
  requested_bytes INTEGER NOT NULL, block_bytes INTEGER NOT NULL, time_ns INTEGER,
  thread INTEGER NOT NULL, stack INTEGER, range INTEGER, pool INTEGER);
CREATE TABLE scopes (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, thread INTEGER NOT NULL, kind INTEGER NOT NULL,
  ends INTEGER NOT NULL, phase INTEGER, step INTEGER);
CREATE TABLE names (
  id INTEGER PRIMARY KEY, event INTEGER NOT NULL, role INTEGER NOT NULL, name TEXT NOT NULL,
  shape TEXT NOT NULL, dtype TEXT NOT NULL);
CREATE TABLE allocations (
  event INTEGER PRIMARY KEY, last_event INTEGER NOT NULL, released_event INTEGER NOT NULL,
  category INTEGER NOT NULL, name INTEGER);
CREATE TABLE peaks (
  space INTEGER PRIMARY KEY, event INTEGER NOT NULL, allocated_bytes INTEGER NOT NULL,
  requested_bytes INTEGER NOT NULL);
)";

inline constexpr const char* kViews = R"(
CREATE VIEW events_in_words AS
SELECT e.id, k.name AS kind, p.name AS phase, e.step, e.in_update, e.in_recompute, s.name AS space,
       m.name AS module, o.name AS operator, e.stream, e.address, e.requested_bytes, e.block_bytes,
       e.time_ns, r.name AS range, e.pool
FROM events e
JOIN event_kinds k ON k.id = e.kind JOIN phases p ON p.id = e.phase
JOIN spaces s ON s.id = e.space
LEFT JOIN modules m ON m.id = e.module LEFT JOIN operators o ON o.id = e.operator
LEFT JOIN ranges r ON r.id = e.range;
CREATE VIEW alive_at_peak AS
SELECT s.name AS space, a.event, c.name AS category, p.name AS phase, e.step, m.name AS module,
       o.name AS operator, n.name AS name, n.shape, n.dtype, e.requested_bytes, e.block_bytes,
       r.name AS range
FROM peaks k
JOIN allocations a ON a.event <= k.event AND a.last_event > k.event
JOIN events e ON e.id = a.event AND e.space = k.space
JOIN spaces s ON s.id = e.space JOIN categories c ON c.id = a.category
JOIN phases p ON p.id = e.phase
LEFT JOIN modules m ON m.id = e.module LEFT JOIN operators o ON o.id = e.operator
LEFT JOIN names n ON n.id = a.name LEFT JOIN ranges r ON r.id = e.range;
)";

}  // namespace peakbench::trace
