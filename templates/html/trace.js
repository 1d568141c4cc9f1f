
// A packed trace (reports/trace_data.h) made ready to be drawn: lifetimes as columns, and what is alive at any event.
class CaseTrace {
  static async unpack(base64) {
    const text = atob(base64.trim());
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate'));
    return new CaseTrace(new Uint8Array(await new Response(stream).arrayBuffer()));
  }

  constructor(bytes) {
    const length = new DataView(bytes.buffer).getUint32(0, true);
    Object.assign(this, JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length))));
    let at = 4 + length;
    const next = () => {
      let value = 0, scale = 1;
      for (;;) {
        const byte = bytes[at++];
        value += (byte & 127) * scale;
        if (byte < 128) return value;
        scale *= 128;
      }
    };
    const signed = () => {
      const value = next();
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    };
    this.readAllocations(next);
    this.readReserved(next, signed);
    this.levels = this.levels.map((samples) => this.readLevel(samples, next, signed));
    this.prepareTime();
    this.prepareSlots();
    if (this.allocations) this.prepareEvents();
    this.highest = this.highestTotal();
  }

  readAllocations(next) {
    const n = this.allocations;
    const column = (type, read) => {
      const values = new type(n);
      for (let i = 0; i < n; ++i) values[i] = read(i);
      return values;
    };
    let event = 0;
    this.first = column(Uint32Array, () => (event += next()));
    this.last = column(Uint32Array, (i) => {
      const life = next();
      return life === 0 ? this.events : this.first[i] + life;
    });
    this.size = column(Float64Array, next);
    this.slack = column(Float64Array, next);
    this.category = column(Uint8Array, next);
    this.module = column(Int32Array, () => next() - 1);
    this.operator = column(Int32Array, () => next() - 1);
    this.name = column(Int32Array, () => next() - 1);
  }

  readReserved(next, signed) {
    const changes = this.reserved;
    this.reserved = [];
    let event = 0, bytes = 0;
    for (let i = 0; i < changes; ++i) {
      event += next();
      bytes += signed();
      this.reserved.push([event, bytes]);
    }
  }

  readLevel(samples, next, signed) {
    const level = { event: new Uint32Array(samples), time: null, bytes: [] };
    let event = 0, time = 0;
    for (let i = 0; i < samples; ++i) level.event[i] = event += next();
    if (this.clocked) {
      level.time = new Float64Array(samples);
      for (let i = 0; i < samples; ++i) level.time[i] = time += signed();
    }
    for (let category = 0; category < this.categories.length; ++category) {
      const values = new Float64Array(samples);
      let bytes = 0;
      for (let i = 0; i < samples; ++i) values[i] = bytes += signed();
      level.bytes.push(values);
    }
    return level;
  }

  // Known moments (event, milliseconds) between which time is taken to run evenly.
  prepareTime() {
    if (!this.clocked) return;
    const level = this.levels[this.levels.length - 1];
    this.timeEvents = [0];
    this.times = [0];
    for (let i = 0; i < level.event.length; ++i) {
      const time = level.time[i] / 1e6;
      if (level.event[i] <= this.timeEvents[this.timeEvents.length - 1]) continue;
      this.timeEvents.push(level.event[i]);
      this.times.push(Math.max(time, this.times[this.times.length - 1] + 1e-9));
    }
  }

  // Places of phases that are the same in every case: step s is [s, s + 1), its phases equally wide; building is as wide
  // and before 0. A step of phases in another order (several micro-batches, an evaluation) is one stretch.
  prepareSlots() {
    const phases = [...(this.spans.some(([phase]) => phase === 'data') ? ['data'] : []), 'forward', 'backward', 'optimizer_step'];
    const order = ([phase]) => phases.indexOf(phase);  // building: -1
    const isKnown = ([phase]) => phase === 'build' || phases.includes(phase);
    this.slotEvents = [0];
    this.slots = [-1 / 3];
    const knot = (event, place) => {
      const end = this.slotEvents.length - 1;
      if (event <= this.slotEvents[end]) {
        this.slots[end] = Math.max(place, this.slots[end]);
        return;
      }
      this.slotEvents.push(event);
      this.slots.push(Math.max(place, this.slots[end] + 1e-9));
    };
    const byStep = new Map();
    for (const span of this.spans) {
      const list = byStep.get(span[1]) ?? [];
      list.push(span);
      byStep.set(span[1], list);
    }
    for (const [step, spans] of byStep) {
      const simple = spans.every((span, i) => isKnown(span) && (i === 0 || order(span) > order(spans[i - 1])));
      const base = Math.max(step, 0);
      if (simple) {
        for (const span of spans) {
          knot(span[2], base + order(span) / phases.length);
          knot(span[3], base + (order(span) + 1) / phases.length);
        }
      } else {
        knot(spans[0][2], base);
        knot(spans[spans.length - 1][3], base + 1);
      }
    }
  }

  // For every event what it does, and the sums by category at every 4096th.
  prepareEvents() {
    this.change = new Int32Array(this.events);
    for (let i = 0; i < this.allocations; ++i) {
      this.change[this.first[i]] = i + 1;
      if (this.last[i] < this.events) this.change[this.last[i]] = -(i + 1);
    }
    const width = this.categories.length;
    const sums = new Float64Array(width);
    this.marks = new Float64Array(width * (Math.floor(this.events / 4096) + 1));
    for (let event = 0; event < this.events; ++event) {
      if (event % 4096 === 0) this.marks.set(sums, width * (event / 4096));
      this.apply(event, sums);
    }
  }

  apply(event, sums) {
    const change = this.change[event];
    if (change > 0) {
      sums[this.category[change - 1]] += this.size[change - 1];
      sums[sums.length - 1] += this.slack[change - 1];
    } else if (change < 0) {
      sums[this.category[-change - 1]] -= this.size[-change - 1];
      sums[sums.length - 1] -= this.slack[-change - 1];
    }
    return change;
  }

  // By category after the event.
  sumsAt(event) {
    const width = this.categories.length;
    if (!this.change) return this.sampleAt(event);
    const mark = Math.floor(event / 4096);
    const sums = this.marks.slice(width * mark, width * (mark + 1));
    for (let i = mark * 4096; i <= event; ++i) this.apply(i, sums);
    return sums;
  }

  // What the allocator holds of the device after the event; nothing where the space has no segments.
  reservedAt(event) {
    if (this.reserved.length === 0) return null;
    const i = d3.bisector(([at]) => at).right(this.reserved, event) - 1;
    return i < 0 ? 0 : this.reserved[i][1];
  }

  sampleAt(event) {
    const level = this.levels[this.levels.length - 1];
    const i = Math.max(0, d3.bisectRight(level.event, event) - 1);
    return Float64Array.from(level.bytes, (values) => values[i] ?? 0);
  }

  highestTotal() {
    let highest = 0;
    for (const level of this.levels.slice(0, 1)) {
      for (let i = 0; i < level.event.length; ++i) highest = Math.max(highest, d3.sum(level.bytes, (values) => values[i]));
    }
    for (const [, bytes] of this.reserved) highest = Math.max(highest, bytes);
    return highest;
  }

  // The events [from, to] in at most `columns` columns: each one's highest moment. A wide window is read from the levels
  // of detail, a narrow one event by event.
  window(from, to, columns) {
    from = Math.max(0, Math.floor(from));
    to = Math.min(this.events - 1, Math.ceil(to));
    if (this.change && to - from <= 200000) return this.windowOfEvents(from, to, columns);
    return this.windowOfLevel(from, to, columns);
  }

  windowOfEvents(from, to, columns) {
    const width = this.categories.length, per = Math.max(1, (to - from + 1) / columns);
    const result = { event: [], bytes: [], from, to };
    const sums = this.sumsAt(from), best = Float64Array.from(sums);
    let total = d3.sum(sums), highest = total, at = from, end = from + per;
    const close = () => {
      result.event.push(at);
      for (let c = 0; c < width; ++c) result.bytes.push(best[c]);
    };
    for (let event = from + 1; event <= to; ++event) {
      const change = this.apply(event, sums);
      if (change > 0) total += this.size[change - 1] + this.slack[change - 1];
      if (change < 0) total -= this.size[-change - 1] + this.slack[-change - 1];
      if (event >= end) {
        close();
        while (event >= end) end += per;
        highest = -1;
      }
      if (total > highest) {
        highest = total;
        at = event;
        best.set(sums);
      }
    }
    close();
    return result;
  }

  windowOfLevel(from, to, columns) {
    const level = this.levels.find((candidate) => candidate.event.length * (to - from) / this.events >= columns) ??
      this.levels[this.levels.length - 1];
    const width = this.categories.length;
    const result = { event: [], bytes: [], from, to };
    const begin = Math.max(0, d3.bisectRight(level.event, from) - 1);
    const end = Math.min(level.event.length, d3.bisectLeft(level.event, to) + 1);
    const per = Math.max(1, Math.ceil((end - begin) / columns));
    for (let i = begin; i < end; i += per) {
      let best = i, highest = -1;
      for (let j = i; j < Math.min(i + per, end); ++j) {
        let total = 0;
        for (let c = 0; c < width; ++c) total += level.bytes[c][j];
        if (total > highest) {
          highest = total;
          best = j;
        }
      }
      result.event.push(level.event[best]);
      for (let c = 0; c < width; ++c) result.bytes.push(level.bytes[c][best]);
    }
    return result;
  }

  // Allocations alive after the event, the largest first.
  aliveAt(event) {
    const alive = [];
    for (let i = 0; i < this.allocations && this.first[i] <= event; ++i) {
      if (this.last[i] > event) alive.push(i);
    }
    return alive.sort((a, b) => this.bytesOf(b) - this.bytesOf(a) || a - b);
  }

  bytesOf(i) { return this.size[i] + this.slack[i]; }
  spanAt(event) { return this.spans.find(([, , first, last]) => first <= event && event < last); }

  place(event, along) {
    if (along === 'time' && this.clocked) return between(this.timeEvents, this.times, event);
    if (along === 'phases') return between(this.slotEvents, this.slots, event);
    return event;
  }
  eventAt(place, along) {
    if (along === 'time' && this.clocked) return between(this.times, this.timeEvents, place);
    if (along === 'phases') return between(this.slots, this.slotEvents, place);
    return place;
  }
}

// Straight lines between known points (xs ascending).
function between(xs, ys, x) {
  const i = Math.min(Math.max(1, d3.bisectRight(xs, x)), xs.length - 1);
  if (xs.length < 2) return ys[0];
  const part = Math.min(1, Math.max(0, (x - xs[i - 1]) / (xs[i] - xs[i - 1])));
  return ys[i - 1] + part * (ys[i] - ys[i - 1]);
}

const kGiB = 2 ** 30;
const formatGiB = (bytes) => (bytes === 0 ? '0' : bytes < 0.0005 * kGiB ? '<0.001' : (bytes / kGiB).toFixed(3));
const formatCount = (count) => Math.round(count).toLocaleString('en');
const phaseLabel = (phase) => phase.replace('_', ' ');
