"""Hooks of mkdocs: a folder in the navigation, no request to another site, and pages that are written for GitHub.

GitHub's Markdown differs from Python's in three ways.

- A link may lead out of docs/. Here it leads to the repository.
- A list or a table may follow a line of text. Here it needs an empty line before it.
- The parts of a list's item are indented by two or three spaces. Here they need four.
"""

import pathlib
import posixpath
import re

FENCE = re.compile(r"\s*```")
ITEM = re.compile(r" *(?:[-*]|\d+\.) +")
SPAN = re.compile(r"(`[^`\n]*`)")
LINK = re.compile(r"\]\(([^)\s#:]+)(#[^)\s]*)?\)")


def lead_out(line, page, repository):
    def one(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), match[1]))
        return match[0] if path.startswith("docs/") else f"]({repository}/blob/main/{path}{match[2] or ''})"

    return LINK.sub(one, line)


def links_lead_out(line, page, repository):
    """The line, with its links out of docs/ into the repository."""
    return "".join(part if part.startswith("`") else lead_out(part, page, repository) for part in SPAN.split(line))


class Lists:
    """Indents what belongs to an item by four spaces for each list that it is in."""

    def __init__(self):
        self.columns = []  # where the text of each open item begins, outermost first

    def indented(self, line, after_blank):
        text = line.lstrip(" ")
        column, item = len(line) - len(text), ITEM.match(line)
        if not text or (not item and column == 0 and not after_blank):
            return line  # an empty line, or text that continues an item's
        while self.columns and column < self.columns[-1]:
            self.columns.pop()
        if not self.columns and not item:
            return line
        beyond = 0 if item or not self.columns else column - self.columns[-1]
        line = " " * (4 * len(self.columns) + beyond) + text
        if item:
            self.columns.append(item.end())
        return line


def as_python_reads_it(text, page, repository):
    lines, lists, fence, previous = [], Lists(), None, ""
    for line in text.splitlines():
        if fence is not None:
            lines.append(line if fence <= 0 or not line else " " * fence + line)
            fence = None if FENCE.match(line) else fence
            continue
        is_item, was_open = ITEM.match(line), bool(lists.columns)
        begins = (is_item and not was_open) or (line.startswith("|") and not previous.startswith("|"))
        if begins and previous.strip():
            lines.append("")
        shown = lists.indented(line, not previous.strip())
        if FENCE.match(line):
            fence = len(shown) - len(line)
        lines.append(links_lead_out(shown, page, repository))
        previous = line
    return "\n".join(lines) + "\n"


def with_folders(entries, docs):
    """The navigation, with the pages of a folder in its place: README.md first, then by name."""
    found = []
    for entry in entries:
        if isinstance(entry, str) and entry.endswith("/"):
            pages = sorted((docs / entry).glob("*.md"), key=lambda page: (page.name != "README.md", page.name))
            found += [entry + page.name if page.name == "README.md" else {page.stem: entry + page.name} for page in pages]
        elif isinstance(entry, dict):
            found.append({title: with_folders(inner, docs) if isinstance(inner, list) else inner for title, inner in entry.items()})
        else:
            found.append(entry)
    return found


def on_config(config):
    config.nav = with_folders(config.nav, pathlib.Path(config.docs_dir))
    return config


def on_page_markdown(markdown, page, config, files):
    return as_python_reads_it(markdown, page.file.src_uri, config.repo_url.rstrip("/"))


def on_post_page(output, page, config):
    """Without the theme's question to GitHub, on every page, how many stars the repository has."""
    return output.replace(' data-md-component="source"', "")
