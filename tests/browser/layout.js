// What a reader of the page would call broken, a sentence each: a word that breaks inside, text that leaves its cell, a
// page that is wider than its window, text that is cut or that has to be scrolled to.
(() => {
  const kFixed = 'svg, script, style, .spoken, .skip, .seg, select';  // drawn to scale, or shown to nobody
  const kLongestRun = 20;                                             // letters without a separator: these may break
  const kScrolls = 760;                                               // from this width on a table may scroll, with a hint
  const letter = /[\p{L}\p{N}]/u, ideograph = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
  const found = [], range = document.createRange(), width = document.documentElement.clientWidth, onPaper = matchMedia('print').matches;

  const where = (element) => {
    const path = [];
    for (let x = element; x && x !== document.body && path.length < 4; x = x.parentElement)
      path.unshift([x.tagName.toLowerCase(), ...x.classList].join('.'));
    return path.join(' > ');
  };
  const boxOf = (node, from, to) => {
    range.setStart(node, from);
    range.setEnd(node, to);
    return [...range.getClientRects()].filter((box) => box.width > 0);
  };
  const apart = (a, b) => Math.abs(a.bottom - b.bottom) > 3;

  // Words, as pieces of text nodes: a <wbr> does not end one.
  const words = [];
  let open = null;
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const node = walk.currentNode, parent = node.parentElement;
    if (parent.closest(kFixed) || !parent.checkVisibility()) continue;
    if (node.previousSibling?.nodeName !== 'WBR') open = null;
    for (const match of node.data.matchAll(/\S+/g)) {
      if (!open || match.index > 0) words.push(open = []);
      open.push({ node, from: match.index, to: match.index + match[0].length });
    }
    if (/\s$/.test(node.data)) open = null;
  }

  const breaks = (word) => {
    const letters = [];
    for (const { node, from, to } of word)
      for (let i = from; i < to; ++i) letters.push({ char: node.data[i], box: boxOf(node, i, i + 1).at(-1) });
    const text = letters.map((one) => one.char).join('');
    for (let i = 1; i < letters.length; ++i) {
      const [before, after] = [letters[i - 1], letters[i]];
      if (!before.box || !after.box || !apart(before.box, after.box) || after.box.bottom < before.box.bottom) continue;
      const run = text.slice(0, i).match(/[\p{L}\p{N}]*$/u)[0].length + text.slice(i).match(/^[\p{L}\p{N}]*/u)[0].length;
      const joined = /\p{Ll}/u.test(before.char) && /\p{Lu}/u.test(after.char);  // ScaledDotProduct
      const inside = letter.test(before.char) && !ideograph.test(before.char) && !joined && run < kLongestRun;
      const number = /[.,]/.test(before.char) && /\d/.test(after.char) && /\d/.test(letters[i - 2]?.char ?? '');
      if (inside || number) return `${text.slice(Math.max(0, i - 12), i)}|${text.slice(i, i + 12)}`;
    }
    return null;
  };

  for (const word of words) {
    const parent = word[0].node.parentElement, boxes = word.flatMap(({ node, from, to }) => boxOf(node, from, to));
    if (boxes.length === 0) continue;
    const cell = parent.closest('td, th')?.getBoundingClientRect();
    if (cell && boxes.some((box) => box.right > cell.right + 1.5 || box.left < cell.left - 1.5))
      found.push(`"${word[0].node.data.slice(word[0].from, word[0].to)}" leaves its cell, ${where(parent)}`);
    const broken = boxes.some((box) => apart(box, boxes[0])) && breaks(word);
    if (broken) found.push(`"${broken}" breaks, ${where(parent)}`);
  }

  const wide = document.scrollingElement.scrollWidth - width;
  if (wide > 0) {
    const ends = [...document.querySelectorAll('body *')].filter((one) => one.checkVisibility() && !one.closest('svg'));
    const last = ends.reduce((a, b) => (b.getBoundingClientRect().right >= a.getBoundingClientRect().right ? b : a));
    found.push(`the page is ${wide} px wider than its window, by ${where(last)} "${last.textContent.slice(0, 40)}"`);
  }
  for (const element of document.querySelectorAll('body *')) {
    if (element.closest(`${kFixed}, .bar, .mini, .drawing`) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    if (style.overflowX === 'visible' || element.scrollWidth <= element.clientWidth + 1) continue;
    const hinted = style.overflowX === 'auto' && style.backgroundImage.includes('gradient');
    if (hinted && width >= kScrolls && !onPaper) continue;
    if (style.textOverflow === 'ellipsis' && element.title) continue;
    found.push(`${element.scrollWidth} px in ${element.clientWidth}, ${where(element)}`);
  }
  return found;
})()
