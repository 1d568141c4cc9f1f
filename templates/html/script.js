// Comfort only: every figure is in the page without it.
'use strict';

// Sorting. A heading becomes a button; rows that failed stay last; a third press gives the first order back.
for (const table of document.querySelectorAll('table.main')) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];
  // A failed row's cell spans columns: count them to find the column under a heading.
  const cell = (row, column) => {
    let at = 0;
    for (const candidate of row.cells) {
      if (at === column) return candidate;
      at += candidate.colSpan;
    }
    return null;
  };
  const value = (row, column) => {
    const text = cell(row, column)?.textContent.trim() ?? '';
    if (column === 0) return text.replace(/^\d+\s*/, '');
    const number = parseFloat(text.replace(/,/g, '').replace('−', '-').replace('<', ''));
    return Number.isNaN(number) ? text : number;
  };
  const compare = (a, b) => {
    if (typeof a === typeof b) return typeof a === 'number' ? a - b : a.localeCompare(b);
    return typeof a === 'number' ? -1 : 1;
  };
  headings.forEach((heading, column) => {
    if ('fixed' in heading.dataset) return;
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener('click', () => {
      const next = { none: 'ascending', ascending: 'descending', descending: 'none' }[heading.ariaSort ?? 'none'];
      headings.forEach((other) => other.removeAttribute('aria-sort'));
      if (next === 'none') return body.append(...original);
      heading.setAttribute('aria-sort', next);
      const sign = next === 'ascending' ? 1 : -1;
      const failed = (row) => (row.classList.contains('failed') ? 1 : 0);
      body.append(...[...original].sort((a, b) =>
        failed(a) - failed(b) || sign * compare(value(a, column), value(b, column))));
    });
  });
}

// Filtering, where a table is long: rows stay that have every word, and what it is compared with stays, too.
for (const table of document.querySelectorAll('table.main')) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 6) continue;
  const label = document.createElement('label'), field = document.createElement('input'), count = document.createElement('span');
  label.className = 'filter';
  field.type = 'search';
  field.placeholder = 'lora checkpointing -offload';
  count.setAttribute('role', 'status');
  label.append('Rows with ', field, count);
  table.before(label);
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/).filter((word) => word.replace('-', ''));
    const has = (text, word) => (word.startsWith('-') ? !text.includes(word.slice(1)) : text.includes(word));
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !row.classList.contains('reference') && !words.every((word) => has(text, word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    count.textContent = shown < rows.length ? ` ${shown} of ${rows.length}` : '';
  });
}

// A category in the legend lights up its part of every bar of the table.
for (const group of document.querySelectorAll('.group')) {
  const light = (category) => {
    group.classList.toggle('dim', category !== null);
    for (const segment of group.querySelectorAll('.seg')) {
      segment.classList.toggle('lit', segment.dataset.category === category);
    }
  };
  for (const item of group.querySelectorAll('.legend [data-category]')) {
    item.addEventListener('mouseenter', () => light(item.dataset.category));
    item.addEventListener('mouseleave', () => light(null));
  }
}

// A frame of a flame graph says its figures below it, for those who have no pointer to rest.
for (const flame of document.querySelectorAll('.flame')) {
  const said = flame.querySelector('.said');
  const say = (event) => { said.textContent = event.target.closest('.frame')?.getAttribute('aria-label') ?? ''; };
  flame.addEventListener('focusin', say);
  flame.addEventListener('mouseover', say);
}
