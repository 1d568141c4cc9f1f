
// The interactive chart of a table: which case, which one beside it, zoom and pan for both, what is alive at a moment.
class Viewer {
  // `number`: of the page's charts, from 1 on.
  constructor(root, number) {
    this.root = d3.select(root);
    this.number = number;
    this.group = root.closest('.group');
    this.sources = [...this.group.querySelectorAll('.trace-data')];
    this.overlay = 'overlay' in this.group.dataset;  // a comparison: the second case is a line over the first
    this.traces = new Map();
    this.charts = [];
    this.transform = d3.zoomIdentity;
    this.area = this.root.select('.charts').attr('tabindex', 0).attr('role', 'application')
      .attr('aria-label', 'Chart: arrow keys pan, plus and minus zoom, Enter lists what is alive at the middle, Shift with an arrow key at the moment beside');
    this.select = (name) => this.root.select(`.${name}`);
    this.fillPicks();
    // The wheel belongs to the page until the chart has been clicked, or with Ctrl.
    const wheelIsOurs = () => d3.event.ctrlKey || d3.event.metaKey || this.area.node().contains(document.activeElement);
    this.zoom = d3.zoom().filter(() => !d3.event.button && (d3.event.type !== 'wheel' || wheelIsOurs())).on('zoom', () => {
      this.transform = d3.event.transform;
      this.scheduleDraw();
      if (this.root.attr('data-ready')) this.keepInAddress();
    });
    this.area.call(this.zoom).on('dblclick.zoom', null);
    this.listen();
  }

  fillPicks() {
    const add = (select, value, text) => select.append('option').attr('value', value).text(text);
    add(this.select('beside'), '', 'nothing');
    for (const source of this.sources) {
      add(this.select('pick'), source.dataset.row, source.dataset.name);
      add(this.select('beside'), source.dataset.row, source.dataset.name);
    }
    if (!this.overlay) return;
    this.select('beside').property('value', this.sources[this.sources.length - 1].dataset.row);
    this.select('along').property('value', 'phases');
  }

  listen() {
    for (const name of ['pick', 'beside']) this.select(name).on('change', () => this.load());
    for (const name of ['along', 'as']) this.select(name).on('change', () => this.reset());
    const scale = (factor) => this.area.call(this.zoom.scaleBy, factor);
    const pan = (part) => this.area.call(this.zoom.translateBy, part * this.innerWidth() / this.transform.k, 0);
    this.select('zoom-in').on('click', () => scale(2));
    this.select('zoom-out').on('click', () => scale(0.5));
    this.select('zoom-all').on('click', () => this.reset());
    this.select('zoom-step').on('click', () => this.showStep());
    this.select('zoom-peak').on('click', () => this.showPeak());
    this.select('save').on('click', () => this.save());
    this.area.on('keydown', () => {
      const arrow = (side) => (d3.event.shiftKey ? this.chooseBeside(side) : pan(-0.2 * side));
      const keys = { ArrowLeft: () => arrow(-1), ArrowRight: () => arrow(1), '+': () => scale(1.5), '=': () => scale(1.5),
        '-': () => scale(1 / 1.5), Home: () => this.reset(), Enter: () => this.chooseAt(this.charts[0], this.middle()) };
      if (!keys[d3.event.key]) return;
      d3.event.preventDefault();
      keys[d3.event.key]();
    });
    this.area.on('mousemove', () => this.hover(d3.event)).on('mouseleave', () => this.charts.forEach((chart) => chart.hover(null)));
    this.area.on('click', () => {
      this.area.node().focus({ preventScroll: true });
      if (d3.event.defaultPrevented) return;
      const chart = this.chartUnder(d3.event.target) ?? this.charts[0];
      this.chooseAt(chart, d3.event.clientX - this.area.node().getBoundingClientRect().left);
    });
    new ResizeObserver(() => this.resize()).observe(this.area.node());
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.scheduleDraw());
  }

  chartUnder(element) { return this.charts.find((chart) => chart.root.node().contains(element)); }
  innerWidth() { return this.area.node().getBoundingClientRect().width - kMargin.left - kMargin.right; }
  middle() { return kMargin.left + this.innerWidth() / 2; }

  async trace(row) {
    const source = this.sources.find((candidate) => candidate.dataset.row === row);
    if (!this.traces.has(row)) this.traces.set(row, CaseTrace.unpack(source.textContent));
    return [source.dataset.name, await this.traces.get(row)];
  }

  // Loads the cases chosen and draws them anew.
  async load() {
    this.started = true;
    const rows = [this.select('pick').property('value'), this.select('beside').property('value')].filter(Boolean);
    const loaded = await Promise.all(rows.map((row) => this.trace(row)));
    this.charts.forEach((chart) => chart.remove());
    this.charts = this.overlay && loaded.length === 2
      ? [new Chart(this.area, `${loaded[0][0]}, ${loaded[1][0]} as a line`, loaded[0][1], { name: loaded[1][0], trace: loaded[1][1] })]
      : loaded.map(([name, trace]) => new Chart(this.area, name, trace));
    const clocked = loaded.every(([, trace]) => trace.clocked);
    this.select('along').select('[value=time]').attr('disabled', clocked ? null : '');
    if (!clocked && this.select('along').property('value') === 'time') this.select('along').property('value', 'events');
    this.select('moment').html('');
    this.resize();
    this.reset();
    this.root.attr('data-ready', rows.join(' '));
  }

  // What is shown is kept in the page's address, so that a link or a reload shows it again:
  // #chart=1&case=...&beside=...&along=events&as=categories&from=0&to=100&event=42
  keepInAddress() {
    clearTimeout(this.later);
    this.later = setTimeout(() => {
      const value = (name) => this.select(name).property('value'), state = new URLSearchParams({ chart: this.number, case: value('pick') });
      if (value('beside')) state.set('beside', value('beside'));
      state.set('along', value('along'));
      state.set('as', value('as'));
      if (this.transform.k > 1) this.shown().forEach((place, i) => state.set(i ? 'to' : 'from', place.toFixed(2)));
      const chart = this.charts.find((candidate) => candidate.moment !== null);
      if (chart) state.set('event', `${this.charts.indexOf(chart)}.${chart.moment}`);
      history.replaceState(null, '', `#${state}`);
    }, 200);
  }

  // The state of an address; what is not in the page is left as it is.
  async restore(state) {
    const pick = (name, value) => {
      const options = [...this.select(name).node().options];
      if (options.some((option) => option.value === value && !option.disabled)) this.select(name).property('value', value);
    };
    pick('pick', state.get('case'));
    pick('beside', state.get('beside') ?? '');
    pick('along', state.get('along'));
    pick('as', state.get('as'));
    await this.load();
    const [from, to] = ['from', 'to'].map((name) => parseFloat(state.get(name)));
    if (from < to) this.showPlaces(from, to);
    const [chart, event] = (state.get('event') ?? '').split('.').map(Number);
    if (event >= 0 && event < this.charts[chart]?.trace.events) this.choose(this.charts[chart], event);
    this.root.node().scrollIntoView({ block: 'nearest' });
  }

  // The places at the chart's two ends.
  shown() { return this.transform.rescaleX(this.baseScale(this.select('along').property('value'))).domain(); }

  // "ViT-L/16, emulated:h100-80gb, fp32, ..., emulated card: bytes only, no times": what the table is of.
  heading() {
    const texts = [this.group.querySelector('h2'), ...this.group.querySelectorAll('.setting > *')].map((element) => element?.textContent.trim());
    return texts.filter(Boolean).join(', ');
  }

  // The charts with their axes, and what the colours are, twice as fine as the screen's.
  picture() {
    const kLine = 20, page = getComputedStyle(document.body), charts = this.charts, width = charts[0].width;
    const used = new Map(charts.flatMap(({ trace, order }) => {
      const { bytes } = trace.window(0, trace.events, width), several = trace.categories.length;
      return order.filter((i) => bytes.some((amount, at) => at % several === i && amount > 0)).map((i) => trace.categories[i]);
    }));
    const items = [...used].map(([name, label]) => ({ name, label }));
    const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
    context.font = `12px ${page.fontFamily}`;
    let x = 0, row = 0;
    for (const item of items) {
      const needed = context.measureText(item.label).width + 34;
      if (x + needed > width - kMargin.left) [x, row] = [0, row + 1];
      [item.x, item.row] = [kMargin.left + x, row];
      x += needed;
    }
    const height = d3.sum(charts, (chart) => chart.height + kLine) + (row + 2) * kLine + 8;
    [canvas.width, canvas.height] = [2 * width, 2 * height];
    context.scale(2, 2);
    context.fillStyle = page.backgroundColor;
    context.fillRect(0, 0, width, height);
    const say = (text, left, top, font, colour) => {
      [context.font, context.fillStyle, context.textBaseline] = [font, colour, 'top'];
      context.fillText(text, left, top);
    };
    say(this.heading(), kMargin.left, 4, `12px ${page.fontFamily}`, page.color);
    let top = kLine;
    for (const chart of charts) {
      say(chart.name, kMargin.left, top + 4, `600 13px ${page.fontFamily}`, page.color);
      top += kLine;
      context.drawImage(chart.canvas.node(), 0, top, width, chart.height);
      const box = chart.svg.node().getBoundingClientRect();
      chart.svg.selectAll('text').each(function draw() {
        const place = this.getBoundingClientRect(), looks = getComputedStyle(this);
        say(this.textContent, place.left - box.left, top + place.top - box.top, `${looks.fontSize} ${page.fontFamily}`, looks.fill);
      });
      top += chart.height;
    }
    for (const item of items) {
      context.fillStyle = charts[0].colour(item.name);
      context.fillRect(item.x, top + item.row * kLine + 6, 11, 11);
      say(item.label, item.x + 16, top + item.row * kLine + 4, `12px ${page.fontFamily}`, page.color);
    }
    return canvas;
  }

  save() {
    const link = document.createElement('a');
    link.download = `${this.charts.map((chart) => chart.name.replace(/[^\w.+-]+/g, '-')).join('-beside-')}.png`;
    link.href = this.picture().toDataURL('image/png');
    link.click();
  }

  resize() {
    const changed = this.charts.map((chart) => chart.resize());
    if (changed.includes(true)) this.draw();  // at once: an emptied canvas would flash
  }

  reset() { this.area.call(this.zoom.transform, d3.zoomIdentity); }

  // Shows the events [from, to] of the first case.
  show(from, to) {
    const trace = this.charts[0].trace, along = this.select('along').property('value');
    this.showPlaces(trace.place(from, along), trace.place(to, along));
  }

  showPlaces(from, to) {
    const base = this.baseScale(this.select('along').property('value'));
    const left = base(from), right = base(to);
    const k = this.innerWidth() / Math.max(right - left, 1e-6);
    this.area.call(this.zoom.transform, d3.zoomIdentity.translate(kMargin.left - k * left, 0).scale(k));
  }

  showStep() {
    const trace = this.charts[0].trace, step = trace.spanAt(trace.peak)?.[1] ?? 0;
    const spans = trace.spans.filter((span) => span[1] === step);
    if (spans.length > 0) this.show(spans[0][2], spans[spans.length - 1][3]);
  }

  showPeak() {
    const trace = this.charts[0].trace, around = Math.max(20, trace.events / 200);
    this.show(trace.peak - around, trace.peak + around);
    this.choose(this.charts[0], trace.peak);
  }

  // All that is drawn, what lies over a chart too.
  drawn() { return this.charts.flatMap(({ trace, over }) => (over ? [trace, over.trace] : [trace])); }

  baseScale(along) {
    const places = this.drawn().map((trace) => [trace.place(0, along), trace.place(trace.events, along)]);
    const domain = [Math.min(...places.map((place) => place[0])), Math.max(...places.map((place) => place[1]))];
    return d3.scaleLinear(domain, [kMargin.left, kMargin.left + this.innerWidth()]);
  }

  scheduleDraw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  draw() {
    if (this.charts.length === 0) return;
    const started = performance.now();
    const along = this.select('along').property('value'), as = this.select('as').property('value');
    const left = kMargin.left, right = left + this.innerWidth();
    const events = Math.max(...this.drawn().map((trace) => trace.events));
    this.zoom.scaleExtent([1, Math.max(1, events / 10)]).extent([[left, 0], [right, 1]]).translateExtent([[left, 0], [right, 1]]);
    const view = { x: this.transform.rescaleX(this.baseScale(along)), along, as,
      highest: 1.12 * Math.max(...this.drawn().map((trace) => trace.highest)) };
    this.charts.forEach((chart) => chart.draw(view));
    this.root.attr('data-draw-ms', (performance.now() - started).toFixed(1))
      .attr('data-domain', view.x.domain().map((place) => place.toFixed(2)).join(' '));
  }

  hover(event) {
    const box = this.area.node().getBoundingClientRect(), under = this.chartUnder(event.target);
    const pixel = event.clientX - box.left;
    const inside = pixel >= kMargin.left && pixel <= kMargin.left + this.innerWidth();
    for (const chart of this.charts) {
      const top = chart.canvas.node().getBoundingClientRect().top;
      chart.hover(inside && (under || this.charts.length === 1) ? pixel : null, event.clientY - top);
    }
  }

  chooseAt(chart, pixel) {
    if (chart && pixel >= kMargin.left) this.choose(chart, chart.eventAtPixel(pixel));
  }

  // The next moment that has a pixel of its own.
  chooseBeside(side) {
    const chart = this.charts.find((candidate) => candidate.moment !== null) ?? this.charts[0];
    const from = chart.moment ?? chart.eventAtPixel(this.middle());
    const [left, right] = [chart.eventAtPixel(this.middle()), chart.eventAtPixel(this.middle() + 1)];
    const to = from + side * Math.max(1, Math.round(right - left));
    this.choose(chart, Math.min(Math.max(to, 0), chart.trace.events - 1));
  }

  choose(chart, event) {
    this.charts.forEach((other) => other.choose(other === chart ? event : null));
    this.keepInAddress();
    this.select('spoken').text(spokenMoment(chart, event));
    showMoment(this.select('moment'), chart, event);
  }
}

// A moment in a sentence, for who does not see the chart.
function spokenMoment(chart, event) {
  const { trace } = chart, sums = trace.sumsAt(event), span = trace.spanAt(event);
  const parts = chart.order.filter((category) => sums[category] > 0).sort((a, b) => sums[b] - sums[a]).slice(0, 3)
    .map((category) => `${trace.categories[category][1]} ${formatGiB(sums[category])}`);
  const where = span ? `, ${phaseLabel(span[0])}${span[1] >= 0 ? ` of step ${span[1] + 1}` : ''}` : '';
  return `${chart.name}, event ${formatCount(event)}${where}: ${formatGiB(d3.sum(sums))} GiB; ${parts.join(', ')}.`;
}

// What is alive at an event: by category, then modules, operators and allocations, the largest first.
function showMoment(panel, chart, event) {
  const { trace } = chart, span = trace.spanAt(event), sums = trace.sumsAt(event), total = d3.sum(sums);
  panel.html('').attr('data-event', event);
  const alive = trace.aliveAt(event);
  const where = span ? `${phaseLabel(span[0])}${span[1] >= 0 ? `, step ${span[1] + 1}` : ''}` : '';
  const head = panel.append('h4');
  head.append('strong').text(`${formatGiB(total)} GiB`);
  head.append('span').text(` alive in ${formatCount(alive.length)} allocations of ${chart.name} at event ${formatCount(event)}, ${where}`);
  if (!trace.allocations) {
    panel.append('p').attr('class', 'quiet').text('This page holds only the outline of this case: its trace is in the run folder.');
    return;
  }
  const chips = panel.append('p').attr('class', 'chips');
  for (const category of chart.order) {
    if (sums[category] <= 0) continue;
    const chip = chips.append('span');
    chip.append('span').attr('class', `swatch c-${trace.categories[category][0]}`);
    chip.append('span').text(`${trace.categories[category][1]} `);
    chip.append('b').text(formatGiB(sums[category]));
  }
  const reserved = trace.reservedAt(event);
  if (reserved !== null) {
    const idle = Math.max(0, reserved - total), share = reserved > 0 ? ` (${(idle / reserved * 100).toFixed(1)} %)` : '';
    panel.append('p').attr('class', 'quiet held').text(`Reserved ${formatGiB(reserved)} GiB, of it idle ${formatGiB(idle)} GiB${share}.`);
  }
  const columns = panel.append('div').attr('class', 'alive-columns');
  appendLargest(columns.append('div'), trace, alive, total);
  const tree = columns.append('div');
  tree.append('h5').text('By module');
  appendChildren(tree.append('ul').attr('class', 'alive-tree'), moduleTree(trace, alive), total);
}

// Allocations that are alike but for the number of their layer are one row, as in the tables of the page; single ones
// are under their modules.
function foldAlike(trace, alive) {
  const rows = new Map();
  for (const i of alive) {
    const name = trace.names[trace.name[i]];
    const label = name ? name[0] : trace.operators[trace.operator[i]] ?? trace.categories[trace.category[i]][1];
    const isState = name && trace.categories[trace.category[i]][0] === 'optimizer_state' && label.includes('.');
    const module = name ? '' : trace.modules[trace.module[i]] ?? '';
    const shape = !name ? '' : isState ? name[2] : `${name[1]} ${name[2]}`;
    const fold = (path) => path.replace(/\d+(?=\.|$)/, '*');  // the first part that is counted, as in causes.cpp
    const folded = [isState ? `*${label.slice(label.lastIndexOf('.'))}` : name ? fold(label) : label, fold(module)];
    const key = [trace.category[i], shape, ...folded].join('\n');
    const row = rows.get(key) ?? { first: i, label, module, folded, shape, bytes: 0, count: 0 };
    row.bytes += trace.bytesOf(i);
    row.count += 1;
    rows.set(key, row);
  }
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes);
}

// A long word may break behind a separator or before a capital, as the page's own do.
function soften(selection, text) {
  const node = selection.node();
  for (const [i, piece] of text.split(/(?<=[/_.,:=@|-])(?![/_.,:=@|-])|(?<=[a-z])(?=[A-Z])/).entries())
    node.append(...(i ? [document.createElement('wbr'), piece] : [piece]));
}

function appendLargest(parent, trace, alive, total) {
  parent.append('h5').text('Largest, layers folded');
  const body = parent.append('table').attr('class', 'largest stacks').append('tbody');
  for (const row of foldAlike(trace, alive).slice(0, 25)) {
    const several = row.count > 1, [label, module] = several ? row.folded : [row.label, row.module];
    const line = body.append('tr').attr('title', several ? `${row.count} allocations, such as ${describe(trace, row.first)}` : describe(trace, row.first));
    const head = line.append('th').attr('scope', 'row');
    head.append('span').attr('class', `swatch c-${trace.categories[trace.category[row.first]][0]}`);
    head.append('span').call(soften, label);
    if (several) head.append('small').text(` ×${row.count}`);
    if (module) head.append('small').call(soften, ` ${module}`);
    line.append('td').text(row.shape);
    line.append('td').attr('class', 'n').text(formatGiB(row.bytes));
    line.append('td').attr('class', 'n quiet').text(`${(row.bytes / total * 100).toFixed(1)} %`);
  }
}

function moduleTree(trace, alive) {
  const root = { label: '', bytes: 0, count: 0, children: new Map() };
  const add = (node, label, bytes) => {
    if (!node.children.has(label)) node.children.set(label, { label, bytes: 0, count: 0, children: new Map() });
    const child = node.children.get(label);
    child.bytes += bytes;
    child.count += 1;
    return child;
  };
  for (const i of alive) {
    const bytes = trace.bytesOf(i), name = trace.names[trace.name[i]];
    const module = trace.modules[trace.module[i]] || (name ? name[0].split('.').slice(0, -1).join('.') : '');
    let node = root;
    for (const part of module ? module.split('.') : ['(no module)']) node = add(node, part, bytes);
    add(node, trace.operators[trace.operator[i]] ?? (name ? name[0].split('.').pop() : '(no operator)'), bytes);
  }
  return root;
}

// Children are made when their parent is opened.
function appendChildren(list, node, total) {
  const children = [...node.children.values()].sort((a, b) => b.bytes - a.bytes);
  for (const child of children.slice(0, 60)) {
    const item = list.append('li');
    const leaf = child.children.size === 0;
    const holder = leaf ? item.append('div').attr('class', 'leaf') : item.append('details');
    const line = leaf ? holder : holder.append('summary');
    line.append('span').attr('class', 'label').call(soften, child.label);
    line.append('small').text(child.count > 1 ? ` ×${formatCount(child.count)}` : '');
    line.append('b').text(formatGiB(child.bytes));
    line.append('small').text(`${(child.bytes / total * 100).toFixed(1)} %`);
    if (leaf) continue;
    holder.on('toggle', () => {
      if (holder.select('ul').empty()) appendChildren(holder.append('ul'), child, total);
    });
  }
  if (children.length > 60) list.append('li').attr('class', 'quiet').text(`${formatCount(children.length - 60)} more`);
}

// Charts unpack their traces when they come into view, or when a small picture is chosen.
document.documentElement.classList.add('js');
const kept = new URLSearchParams(location.hash.slice(1));
for (const [index, element] of [...document.querySelectorAll('.viewer')].entries()) {
  element.hidden = false;
  const viewer = new Viewer(element, index + 1);
  if (Number(kept.get('chart')) === index + 1) viewer.restore(kept);
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    if (!viewer.started) viewer.load();
  }, { rootMargin: '200px' }).observe(element);
  for (const picture of viewer.group.querySelectorAll('.multiple')) {
    const choose = () => {
      viewer.select('pick').property('value', picture.dataset.row);
      viewer.load();
      element.scrollIntoView({ block: 'nearest' });
    };
    picture.tabIndex = 0;
    picture.setAttribute('role', 'button');
    picture.addEventListener('click', choose);
    picture.addEventListener('keydown', (event) => { if (event.key === 'Enter') choose(); });
  }
}
