
// One case's memory over events on a canvas; axes, hover and the moment chosen above it. Draws a window at a time.
const kMargin = { left: 56, right: 14, top: 24, bottom: 26 };
const kStacking = ['parameter', 'buffer', 'kept', 'optimizer_state', 'gradient', 'input', 'activation', 'recomputed_activation',
  'temporary', 'workspace', 'communication', 'graph_pool', 'allocator_slack'];
const kMostShapes = 1500;

// What a band may say, the longest first: a narrow one says less, and few say nothing.
function bandLabels(phase, step) {
  if (step < 0) return ['build'];
  const short = { forward: 'fwd', backward: 'bwd', optimizer_step: 'optim' }[phase];
  const labels = [phaseLabel(phase)].concat(short ?? []);
  return phase === 'forward' ? [`step ${step + 1}: forward`].concat(labels) : labels;
}

class Chart {
  // `over`: another case's trace, whose total is drawn as a line on the same axes; or null.
  constructor(parent, name, trace, over = null) {
    this.name = name;
    this.trace = trace;
    this.over = over;
    this.order = d3.range(trace.categories.length)
      .sort((a, b) => kStacking.indexOf(trace.categories[a][0]) - kStacking.indexOf(trace.categories[b][0]));
    this.root = parent.append('div').attr('class', 'chart');
    this.root.append('p').attr('class', 'chart-name').text(name);
    this.canvas = this.root.append('canvas');
    this.svg = this.root.append('svg').attr('role', 'img').attr('aria-label', `Memory of ${name} by event`);
    this.xAxis = this.svg.append('g').attr('class', 'x axis-d3');
    this.yAxis = this.svg.append('g').attr('class', 'y axis-d3');
    this.cursor = this.svg.append('line').attr('class', 'cursor').style('display', 'none');
    this.chosen = this.svg.append('line').attr('class', 'chosen').style('display', 'none');
    this.tip = this.root.append('div').attr('class', 'tip').attr('hidden', '');
    this.moment = null;
  }

  // True if the size changed: then the canvas is empty.
  resize() {
    const box = this.root.node().getBoundingClientRect();
    if (this.width === box.width) return false;
    this.width = box.width;
    this.height = box.width < 600 ? 240 : 330;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.attr('width', Math.round(this.width * ratio)).attr('height', Math.round(this.height * ratio))
      .style('width', `${this.width}px`).style('height', `${this.height}px`);
    this.svg.attr('width', this.width).attr('height', this.height);
    this.context = this.canvas.node().getContext('2d');
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return true;
  }

  // `view`: x (a scale over places), along, as, highest (bytes at the top).
  draw(view) {
    this.view = view;
    const { context, trace } = this;
    this.x = view.x;
    this.y = d3.scaleLinear([0, view.highest / kGiB], [this.height - kMargin.bottom, kMargin.top]);
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim() || style.getPropertyValue('--other').trim();
    context.clearRect(0, 0, this.width, this.height);
    context.save();
    context.beginPath();
    context.rect(kMargin.left, 0, this.width - kMargin.left - kMargin.right, this.height - kMargin.bottom);
    context.clip();
    this.drawBands();
    const [from, to] = this.x.domain().map((place) => trace.eventAt(place, view.along));
    if (view.as === 'allocations' && trace.allocations) this.drawShapes(from, to);
    else this.drawAreas(trace.window(from, to, this.width));
    this.drawReserved();
    this.drawOver();
    this.drawPeak();
    context.restore();
    this.drawAxes();
    this.showChosen();
  }

  px(event) { return this.x(this.trace.place(event, this.view.along)); }
  py(bytes) { return this.y(bytes / kGiB); }
  eventAtPixel(pixel) {
    const event = Math.round(this.trace.eventAt(this.x.invert(pixel), this.view.along));
    return Math.min(Math.max(event, 0), this.trace.events - 1);
  }

  drawBands() {
    const { context } = this;
    context.font = '11px system-ui, sans-serif';
    context.textBaseline = 'top';
    for (const [phase, step, first, last] of this.trace.spans) {
      const left = Math.max(this.px(first), kMargin.left), right = Math.min(this.px(last), this.width - kMargin.right);
      if (right <= left) continue;
      context.fillStyle = this.colour(`band-${phase}`);
      context.fillRect(left, 0, right - left, this.height - kMargin.bottom);
      const label = bandLabels(phase, step).find((text) => right - left > context.measureText(text).width + 10);
      if (label) {
        context.fillStyle = this.colour('quiet');
        context.fillText(label, left + 6, 6);
      }
    }
  }

  drawAreas(window) {
    const { context } = this, width = this.trace.categories.length, count = window.event.length;
    const pixels = window.event.map((event) => this.px(event));
    const end = this.px(window.to + 1), below = new Float64Array(count);
    this.drawn = window;
    for (const category of this.order) {
      let some = false;
      context.beginPath();
      for (let i = 0; i < count; ++i) {
        const bytes = window.bytes[i * width + category];
        some ||= bytes > 0;
        const y = this.py(below[i] + bytes);
        context.lineTo(pixels[i], y);
        context.lineTo(pixels[i + 1] ?? end, y);
      }
      for (let i = count - 1; i >= 0; --i) {
        const y = this.py(below[i]);
        context.lineTo(pixels[i + 1] ?? end, y);
        context.lineTo(pixels[i], y);
        below[i] += window.bytes[i * width + category];
      }
      if (!some) continue;
      context.fillStyle = this.colour(this.trace.categories[category][0]);
      context.fill();
    }
  }

  // Every large allocation as a shape: stacked in order of allocation, sinking when one below is freed. What is too small
  // to have a shape of its own is the grey above.
  drawShapes(from, to) {
    const { context, trace } = this, width = trace.categories.length;
    const all = trace.window(from, to, this.width);
    context.fillStyle = this.colour('allocator_slack');
    context.beginPath();
    context.moveTo(this.px(all.event[0]), this.py(0));
    all.event.forEach((event, i) => {
      const y = this.py(d3.sum(all.bytes.slice(i * width, (i + 1) * width)));
      context.lineTo(this.px(event), y);
      context.lineTo(this.px(all.event[i + 1] ?? all.to + 1), y);
    });
    context.lineTo(this.px(all.to + 1), this.py(0));
    context.fill();
    this.shapes = this.stackedShapes(Math.max(0, Math.floor(from)), Math.min(trace.events, Math.ceil(to)));
    context.strokeStyle = this.colour('ground');
    for (const shape of this.shapes) {
      const bytes = trace.bytesOf(shape.allocation), { events, bottoms } = shape;
      context.beginPath();
      for (let i = 0; i < bottoms.length; ++i) {
        context.lineTo(this.px(events[i]), this.py(bottoms[i] + bytes));
        context.lineTo(this.px(events[i + 1]), this.py(bottoms[i] + bytes));
      }
      for (let i = bottoms.length - 1; i >= 0; --i) {
        context.lineTo(this.px(events[i + 1]), this.py(bottoms[i]));
        context.lineTo(this.px(events[i]), this.py(bottoms[i]));
      }
      context.closePath();
      context.fillStyle = this.colour(trace.categories[trace.category[shape.allocation]][0]);
      context.fill();
      context.lineWidth = this.py(0) - this.py(bytes) > 3 ? 0.7 : 0.15;
      context.stroke();
    }
  }

  stackedShapes(from, to) {
    const { trace } = this;
    let chosen = [];
    for (let i = 0; i < trace.allocations && trace.first[i] < to; ++i) {
      if (trace.last[i] > from) chosen.push(i);
    }
    if (chosen.length > kMostShapes) {
      chosen.sort((a, b) => trace.bytesOf(b) - trace.bytesOf(a));
      chosen = chosen.slice(0, kMostShapes).sort((a, b) => a - b);
    }
    const changes = [];
    for (const i of chosen) {
      changes.push([Math.max(trace.first[i], from), 1, i]);
      if (trace.last[i] < to) changes.push([trace.last[i], 0, i]);
    }
    changes.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
    const shapes = [], stack = [];
    let top = 0;
    for (const [event, begins, i] of changes) {
      if (begins) {
        const shape = { allocation: i, events: [event], bottoms: [top] };
        top += trace.bytesOf(i);
        stack.push(shape);
        shapes.push(shape);
        continue;
      }
      const place = stack.findIndex((shape) => shape.allocation === i), bytes = trace.bytesOf(i);
      stack[place].events.push(event);
      stack.splice(place, 1);
      top -= bytes;
      for (const shape of stack.slice(place)) {
        shape.events.push(event);
        shape.bottoms.push(shape.bottoms[shape.bottoms.length - 1] - bytes);
      }
    }
    for (const shape of stack) shape.events.push(to);
    return shapes;
  }

  drawReserved() {
    const { context, trace } = this;
    if (trace.reserved.length === 0) return;
    context.beginPath();
    let y = this.py(0);
    context.moveTo(this.px(0), y);
    for (const [event, bytes] of trace.reserved) {
      context.lineTo(this.px(event), y);
      context.lineTo(this.px(event), y = this.py(bytes));
    }
    context.lineTo(this.px(trace.events), y);
    context.strokeStyle = this.colour('quiet');
    context.lineWidth = 1.2;
    context.stroke();
    const right = this.width - kMargin.right - 4;
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = this.colour('quiet');
    context.textBaseline = 'bottom';
    context.textAlign = 'right';
    context.fillText('reserved', right, this.py(trace.reservedAt(this.eventAtPixel(right))) - 3);
    context.textAlign = 'left';
  }

  drawOver() {
    if (!this.over) return;
    const { context, view } = this, { trace } = this.over, width = trace.categories.length;
    const [from, to] = this.x.domain().map((place) => trace.eventAt(place, view.along));
    const window = trace.window(from, to, this.width), at = (event) => this.x(trace.place(event, view.along));
    context.beginPath();
    window.event.forEach((event, i) => {
      const y = this.py(d3.sum(window.bytes.slice(i * width, (i + 1) * width)));
      context.lineTo(at(event), y);
      context.lineTo(at(window.event[i + 1] ?? window.to + 1), y);
    });
    context.strokeStyle = this.colour('text');
    context.lineWidth = 1.4;
    context.setLineDash([5, 3]);
    context.stroke();
    context.setLineDash([]);
  }

  drawPeak() {
    const { context, trace } = this, x = this.px(trace.peak), bytes = d3.sum(trace.sumsAt(trace.peak)), y = this.py(bytes);
    context.strokeStyle = context.fillStyle = this.colour('text');
    context.setLineDash([3, 3]);
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, this.height);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(x, y, 4, 0, 7);
    context.fill();
    context.font = '600 12px system-ui, sans-serif';
    context.textBaseline = 'bottom';
    const label = `peak ${formatGiB(bytes)} GiB`, room = x + 8 + context.measureText(label).width < this.width - kMargin.right;
    context.textAlign = room ? 'left' : 'right';
    context.strokeStyle = this.colour('ground');  // legible over the line of what is reserved
    context.lineWidth = 4;
    context.lineJoin = 'round';
    context.strokeText(label, x + (room ? 8 : -8), y - 1);
    context.fillText(label, x + (room ? 8 : -8), y - 1);
    context.textAlign = 'left';
  }

  drawAxes() {
    const { along } = this.view;
    const narrow = this.width < 600;
    const xAxis = d3.axisBottom(this.x).ticks(narrow ? 4 : 9).tickSizeOuter(0);
    if (along === 'events') xAxis.tickFormat((event) => (Number.isInteger(event) ? formatCount(event) : ''));
    if (along === 'time') xAxis.tickFormat((time) => `${time.toLocaleString('en')} ms`);
    if (along === 'phases') xAxis.tickFormat((place) => (Number.isInteger(place) && place < this.trace.spans.at(-1)[1] + 1 ? `step ${place + 1}` : ''));
    this.xAxis.attr('transform', `translate(0 ${this.height - kMargin.bottom})`).call(xAxis);
    this.yAxis.attr('transform', `translate(${kMargin.left} 0)`).call(d3.axisLeft(this.y).ticks(5).tickSizeOuter(0)
      .tickFormat((value) => `${value} GiB`));
  }

  line(element, event) {
    element.style('display', event === null ? 'none' : null);
    if (event === null) return;
    const x = this.px(event), inside = x >= kMargin.left && x <= this.width - kMargin.right;
    if (!inside) element.style('display', 'none');
    element.attr('x1', x).attr('x2', x).attr('y1', kMargin.top - 6).attr('y2', this.height - kMargin.bottom);
  }

  choose(event) {
    this.moment = event;
    this.showChosen();
  }
  showChosen() { this.line(this.chosen, this.moment); }

  hover(pixel, pixelY) {
    if (pixel === null) {
      this.line(this.cursor, null);
      this.tip.attr('hidden', '');
      return;
    }
    const event = this.eventAtPixel(pixel);
    this.line(this.cursor, event);
    this.tip.attr('hidden', null).html('');
    const sums = this.trace.sumsAt(event), span = this.trace.spanAt(event);
    this.tip.append('strong').text(`${formatGiB(d3.sum(sums))} GiB`);
    this.tip.append('span').text(` event ${formatCount(event)}${span ? `, ${phaseLabel(span[0])}` : ''}`);
    if (this.over) {
      const { name, trace } = this.over, there = Math.round(trace.eventAt(this.x.invert(pixel), this.view.along));
      const bytes = d3.sum(trace.sumsAt(Math.min(Math.max(there, 0), trace.events - 1)));
      this.tip.append('p').text(`${name} ${formatGiB(bytes)} GiB`);
    }
    const shape = this.view.as === 'allocations' ? this.shapeAt(event, pixelY) : null;
    if (shape) this.tip.append('p').text(describe(this.trace, shape.allocation));
    else this.listCategories(sums);
    this.listReserved(event, d3.sum(sums));
    const left = pixel > this.width / 2 ? pixel - this.tip.node().offsetWidth - 14 : pixel + 14;
    this.tip.style('left', `${Math.max(0, left)}px`).style('top', `${kMargin.top + 26}px`);
  }

  // What is reserved above what is allocated lies idle: cached, or in pieces too small.
  listReserved(event, allocated) {
    const reserved = this.trace.reservedAt(event);
    if (reserved === null) return;
    for (const [label, bytes] of [['reserved', reserved], ['of it idle', Math.max(0, reserved - allocated)]]) {
      const line = this.tip.append('div').attr('class', 'held');
      line.append('span').text(label);
      line.append('b').text(formatGiB(bytes));
    }
  }

  listCategories(sums) {
    for (const category of [...this.order].reverse()) {
      if (sums[category] <= 0) continue;
      const line = this.tip.append('div');
      line.append('span').attr('class', `swatch c-${this.trace.categories[category][0]}`);
      line.append('span').text(this.trace.categories[category][1]);
      line.append('b').text(formatGiB(sums[category]));
    }
  }

  shapeAt(event, pixelY) {
    const bytes = this.y.invert(pixelY) * kGiB;
    return (this.shapes ?? []).find((shape) => {
      const i = d3.bisectRight(shape.events, event) - 1;
      if (i < 0 || i >= shape.bottoms.length) return false;
      return shape.bottoms[i] <= bytes && bytes < shape.bottoms[i] + this.trace.bytesOf(shape.allocation);
    });
  }

  remove() { this.root.remove(); }
}

// An allocation in a line.
function describe(trace, i) {
  const name = trace.names[trace.name[i]];
  const parts = [name ? name[0] : trace.operators[trace.operator[i]] ?? trace.categories[trace.category[i]][1]];
  if (name && (name[1] || name[2])) parts.push(`${name[1]} ${name[2]}`.trim());
  if (trace.modules[trace.module[i]]) parts.push(`in ${trace.modules[trace.module[i]]}`);
  parts.push(`${formatGiB(trace.bytesOf(i))} GiB`, trace.categories[trace.category[i]][1]);
  parts.push(`events ${formatCount(trace.first[i])} to ${trace.last[i] < trace.events ? formatCount(trace.last[i]) : 'the end'}`);
  return parts.join(' · ');
}
