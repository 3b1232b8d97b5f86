"""Renders notes as text."""


def render(notes, width=72):
    lines = []
    for note in notes:
        lines.append(f"{note['id']:>4}  {note['body'][:width]}")
    return "\n".join(lines)
