"""A page that shows a terminal: text with escapes of colour on stdin, HTML on stdout.  terminal.py TITLE ROWS"""
import html
import re
import sys

COLOURS = ["#1d2026", "#e06c75", "#7ec27e", "#e0b15e", "#6fa8dc", "#c586c0", "#5fb8c4", "#c9ccd3"]
BRIGHT = ["#6b7280", "#ff7b86", "#98e098", "#ffd173", "#8cc3f5", "#dea0da", "#7ad4e0", "#ffffff"]


def colour(codes):
    """The colour after 38 or 48, and the codes that follow."""
    if codes[:1] == [5]:
        number, rest = codes[1], codes[2:]
        if number < 16:
            return (COLOURS + BRIGHT)[number], rest
        if number < 232:
            steps = [0, 95, 135, 175, 215, 255]
            red, green, blue = (steps[(number - 16) // by % 6] for by in (36, 6, 1))
            return f"rgb({red},{green},{blue})", rest
        grey = 8 + 10 * (number - 232)
        return f"rgb({grey},{grey},{grey})", rest
    return "rgb({},{},{})".format(*codes[1:4]), codes[4:]


def style(state, codes):
    """The styles after one escape."""
    while codes:
        code, codes = codes[0], codes[1:]
        if code == 0:
            state.clear()
        elif code in (1, 2, 3, 4):
            name = {1: "font-weight:bold", 2: "opacity:.65", 3: "font-style:italic", 4: "text-decoration:underline"}[code]
            state[str(code)] = name
        elif code == 22:
            state.pop("1", None)
            state.pop("2", None)
        elif code in (23, 24):
            state.pop(str(code - 20), None)
        elif code in (38, 48):
            value, codes = colour(codes)
            state["fg" if code == 38 else "bg"] = ("color:" if code == 38 else "background:") + value
        elif code in (39, 49):
            state.pop("fg" if code == 39 else "bg", None)
        elif 30 <= code <= 37:
            state["fg"] = "color:" + COLOURS[code - 30]
        elif 90 <= code <= 97:
            state["fg"] = "color:" + BRIGHT[code - 90]
        elif 40 <= code <= 47:
            state["bg"] = "background:" + COLOURS[code - 40]
    return state


def main():
    title, rows = sys.argv[1], int(sys.argv[2])
    state, out = {}, []
    lines = sys.stdin.read().rstrip("\n").split("\n")[:rows]
    for part in re.split(r"(\x1b\[[0-9;]*m)", "\n".join(lines)):
        escape = re.fullmatch(r"\x1b\[([0-9;]*)m", part)
        if escape:
            style(state, [int(code or 0) for code in escape[1].split(";")])
        elif part:
            out.append(f'<span style="{";".join(state.values())}">{html.escape(part)}</span>')
    print(
        f"""<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #1d2026; font: 14px/19px "DejaVu Sans Mono", monospace; }}
div {{ background: #1d2026; color: #c9ccd3; }}
.bar {{ background: #2b2f38; color: #9aa0ab; padding: 6px 12px; font-size: 12px; }}
pre {{ margin: 0; padding: 10px 12px; font: inherit; white-space: pre; overflow: hidden; }}
</style><div><div class="bar">$ {html.escape(title)}</div><pre>{"".join(out)}</pre></div>"""
    )


main()
