"""The book: runs the commands in its chapters, compares what they print, and makes one page of each chapter.

    python docs/build.py check [CHAPTER…]       run every command, fail where it prints something else
    python docs/build.py update [CHAPTER…]      the same, but write down what it printed
    python docs/build.py html OUT               chapters as pages (needs `pip install markdown`)

A command stands in a block of kind `console` behind `$ `, followed by what it prints. Of that, a line `…` stands for any
number of lines, and `…` inside a line for anything. Python blocks of kind `python` run one after the other in one
session a chapter, where the package `leakscope` is installed. `LEAKSCOPE` names the binary.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

BOOK = pathlib.Path(__file__).parent
ROOT = BOOK.parent
CHAPTERS = [
    ("start", "Start in ten minutes"),
    ("meaning", "What η means"),
    ("noise", "How to choose noise"),
    ("scientist", "For the data scientist"),
    ("engineer", "For the DP engineer"),
    ("officer", "For the privacy officer"),
    ("networks", "Networks"),
    ("texts", "Language models"),
    ("researcher", "For the researcher: the results and their proofs"),
    ("threats", "Threat models, and what is not claimed"),
    ("commands", "Every command"),
    ("documents", "Every document's schema"),
    ("cluster", "From a laptop to a cluster"),
    ("speed", "How fast, how exact"),
    ("papers", "The papers, again"),
    ("others", "Beside other tools"),
]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def binary():
    named = os.environ.get("LEAKSCOPE")
    result = named or shutil.which("leakscope") or str(ROOT / "target/debug/leakscope")
    if not pathlib.Path(result).exists():
        sys.exit(f"{result} is not there: build it with `cargo build`, or name it by LEAKSCOPE")
    return pathlib.Path(result).resolve()


def run(command, folder):
    """What a command prints, on both streams, without colours."""
    environment = dict(os.environ, NO_COLOR="1", PATH=f"{binary().parent}{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    printed = done.stdout + done.stderr
    if "panicked" in printed:
        sys.exit(f"{command}: {printed}")
    return [line.rstrip() for line in printed.rstrip().splitlines()]


def commands(block):
    """Commands of a block with the lines they are said to print."""
    parts = []
    for line in block.splitlines():
        if line.startswith("$ "):
            parts.append([line[2:], []])
        elif parts and not parts[-1][1] and parts[-1][0].endswith("\\"):
            parts[-1][0] += "\n" + line
        else:
            parts[-1][1].append(line.rstrip())
    return parts


def matches(lines, printed):
    """Whether lines are as said, with `…` for whatever is left open."""
    pieces = ["(?:.*\n)*?" if line == "…" else ".*?".join(map(re.escape, line.split("…"))) + "\n" for line in lines]
    return re.fullmatch("".join(pieces), "".join(line + "\n" for line in printed)) is not None


def scratch(folder):
    shutil.copy(ROOT / "examples/patients.csv", folder)
    shutil.copytree(ROOT / "testdata/text/gpt2", pathlib.Path(folder) / "gpt2")
    shutil.copytree(BOOK / "schemas", pathlib.Path(folder) / "schemas")


def check(update, names):
    """Runs all commands of all chapters; each chapter has a folder of its own with the example's table."""
    chosen = names or [name for name, _ in CHAPTERS]
    for name in set(chosen) - {name for name, _ in CHAPTERS}:
        sys.exit(f"there is no chapter {name}: expected one of {', '.join(name for name, _ in CHAPTERS)}")
    wrong = unlisted_schemas()
    for name in chosen:
        path = BOOK / f"{name}.md"
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            scratch(folder)

            def block(result):
                nonlocal wrong
                lines = []
                for command, messages in commands(result.group(1)):
                    printed = run(command, folder)
                    if matches(messages, printed):
                        printed = messages
                    elif not update:
                        wrong += 1
                        print(f"{path.name}: $ {command}\n  said:\n    " + "\n    ".join(messages))
                        print("  printed:\n    " + "\n    ".join(printed))
                    lines += ["$ " + command, *printed]
                return "```console\n" + "\n".join(lines) + "\n```"

            changed = BLOCK.sub(block, text)
            if update and changed != text:
                path.write_text(changed, encoding="utf-8")
            wrong += run_python(path.name, text, folder)
    count = sum(len(commands(b)) for name in chosen for b in BLOCK.findall((BOOK / f"{name}.md").read_text()))
    print(f"{count} commands of {len(chosen)} chapters run, {wrong} printed something else")
    return 1 if wrong else 0


def unlisted_schemas():
    """Schemas that their chapter does not list, and those that it lists and are not there."""
    listed = set(re.findall(r"\]\(schemas/([\w.-]+)\)", (BOOK / "documents.md").read_text(encoding="utf-8")))
    there = {path.name for path in (BOOK / "schemas").iterdir()}
    for name in sorted(listed ^ there):
        print(f"documents.md: {name} is {'listed and not there' if name in listed else 'not listed'}")
    return len(listed ^ there)


def run_python(name, text, folder):
    blocks = PYTHON.findall(text)
    try:
        import leakscope  # noqa: F401
    except ImportError:
        if blocks:
            print(f"{name}: {len(blocks)} Python blocks NOT RUN: the package leakscope is not installed")
        return 0
    if not blocks:
        return 0
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=folder, capture_output=True, text=True, timeout=600
    )
    if done.returncode != 0:
        print(f"{name}: Python blocks failed:\n{done.stderr}")
    return int(done.returncode != 0)


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title} · Leakscope</title><style>{style}</style></head>
<body><nav aria-label="Chapters"><strong>Leakscope</strong><ol>{chapters}</ol></nav><main>{body}
<p class="turn">{turn}</p></main></body></html>
"""


def html(out):
    """Every chapter as a page of its own, without external requests."""
    import markdown

    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    style = (BOOK / "style.css").read_text(encoding="utf-8")
    for at, (name, title) in enumerate(CHAPTERS):
        text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
        body = markdown.markdown(text, extensions=["tables", "fenced_code", "toc", "md_in_html"])
        body = re.sub(r'href="([a-z]+)\.md(#[^"]*)?"', r'href="\1.html\2"', body)
        # Wide tables and long lines scroll by themselves, also by keyboard.
        body = body.replace("<table>", '<div class="wide" tabindex="0"><table>').replace("</table>", "</table></div>")
        body = body.replace("<pre>", '<pre tabindex="0">')
        here = ['<li><a href="{}.html"{}>{}</a></li>'.format(n, ' aria-current="page"' if n == name else "", t)
                for n, t in CHAPTERS]
        following = CHAPTERS[at + 1] if at + 1 < len(CHAPTERS) else None
        turn = f'Next: <a href="{following[0]}.html">{following[1]}</a>' if following else ""
        page = PAGE.format(title=title, style=style, chapters="".join(here), body=body, turn=turn)
        (out / f"{name}.html").write_text(page, encoding="utf-8")
    shutil.copy(out / "start.html", out / "index.html")
    shutil.copytree(BOOK / "schemas", out / "schemas", dirs_exist_ok=True)
    for picture in BOOK.glob("*.png"):
        shutil.copy(picture, out)
    print(f"wrote {len(CHAPTERS)} chapters to {out}: open {out / 'index.html'}")
    return broken_links(out)


def broken_links(out):
    """Links between chapters that lead nowhere."""
    wrong = 0
    for page in sorted(out.glob("*.html")):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            target, _, anchor = link.partition("#")
            inner = out / target if target else page
            known = inner.exists() and (not anchor or f'id="{anchor}"' in inner.read_text(encoding="utf-8"))
            if not known:
                wrong += 1
                print(f"{page.name}: {link} leads nowhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check", *names]:
            sys.exit(check(False, names))
        case ["update", *names]:
            sys.exit(check(True, names))
        case ["html", folder]:
            sys.exit(html(folder))
        case _:
            sys.exit(__doc__)
