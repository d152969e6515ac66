"""Small pictures of numbers, as SVG and PNG made here: matplotlib would make a notebook wait."""

import base64
import struct
import zlib

import numpy as np

from ._numbers import sample, show_number
from ._text import Markup, escape

# As `physkit.plot`'s: Okabe and Ito's, which color-blind readers can tell apart; readable on black and white.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#888888")
# Viridis, and RdBu from blue to red, at equal distances.
_SEQUENTIAL = "440154 482878 3e4989 31688e 26828e 1f9e89 35b779 6ece58 b5de2b fde725"
_DIVERGING = "053061 2166ac 4393c3 92c5de d1e5f0 f7f7f7 fddbc7 f4a582 d6604d b2182b 67001f"
_SIDE = 150  # pixels of a picture
_MAX_CELLS = 128  # of an image along an axis
_MAX_POINTS = 1500
_OTHER_SIGN = 1e-3  # less of the other sign is rounding
_NOT_FINITE = 255  # the color that is transparent


def curve(
    x: np.ndarray, y: np.ndarray, *, width: int = 180, height: int = 44, caption: str = ""
) -> Markup:
    """Numbers over x as a line, or several for `[x lines]`, without axes: the caption says their range."""
    if len(x) < 2:
        return Markup("")
    columns = np.asarray(y, float).reshape(len(y), -1)[:, : len(COLORS)]
    x = np.asarray(x, float)
    if len(x) > 2 * width:  # more than two points a pixel
        stride = -(-len(x) // (2 * width))
        x, columns = x[::stride], columns[::stride]
    finite = columns[np.isfinite(columns)]
    if not finite.size:
        return Markup("")
    across = 2.0 + (width - 4.0) * _unit(x, float(x[0]), float(x[-1]))
    low, high = float(finite.min()), float(finite.max())
    lines = []
    for k, column in enumerate(columns.T):
        up = height - 3 - (height - 6) * _unit(column, low, high)
        # Where a number is not finite the line is broken.
        pieces, is_drawn = [], False
        for a, b in zip(across, up, strict=True):
            pieces.append(f"{'L' if is_drawn else 'M'}{a:.1f} {b:.1f}" if np.isfinite(b) else "")
            is_drawn = bool(np.isfinite(b))
        lines.append(
            f'<path d="{"".join(pieces)}" fill="none" stroke="{COLORS[k]}" stroke-width="1.4"/>'
        )
    title = f"{caption}: {show_number(low)} … {show_number(high)}"
    return _svg(width, height, "".join(lines), title)


def points(
    position: np.ndarray,
    groups: np.ndarray | None = None,
    lengths: np.ndarray | None = None,
    *,
    caption: str = "",
) -> Markup:
    """Points `[n d]` in the plane of their first two axes, colored by group, in a frame of these lengths."""
    stride = -(-len(position) // _MAX_POINTS) if len(position) else 1
    shown = np.asarray(position[::stride], float)
    groups = np.zeros(len(shown), int) if groups is None else np.asarray(groups[::stride], int)
    shown = shown[:, :2] if shown.shape[1] > 1 else np.hstack([shown, np.zeros_like(shown)])
    keep = np.isfinite(shown).all(axis=1)
    shown, groups = shown[keep], groups[keep]
    if not len(shown):
        return Markup("")
    if lengths is not None:
        low, extent = np.zeros(2), np.asarray([*lengths, 0.0], float)[:2]
    else:
        low = shown.min(axis=0)
        extent = shown.max(axis=0) - low
        # A margin, so that points at the edge are whole.
        low, extent = low - 0.05 * extent, 1.1 * extent
    scale = (_SIDE - 8) / (max(extent.max(), np.abs(low).max() * 1e-6) or 1.0)
    width, height = np.maximum(extent * scale, 12.0) + 8
    x = 4 + (shown[:, 0] - low[0]) * scale
    y = height - 4 - (shown[:, 1] - low[1]) * scale
    y = y if extent[1] > 0 else np.full_like(y, height / 2)
    radius = float(np.clip(55 / np.sqrt(len(shown)), 1.2, 5.0))
    body = ""
    for group in np.unique(groups):
        at = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x[groups == group], y[groups == group]))
        color = COLORS[int(group) % len(COLORS)]
        body += (
            f'<path d="{at}" stroke="{color}" stroke-width="{2 * radius:.1f}" '
            'stroke-linecap="round" stroke-opacity=".8" fill="none"/>'
        )
    if lengths is not None:
        body += (
            f'<rect x="4" y="4" width="{width - 8:.1f}" height="{height - 8:.1f}" fill="none" '
            'stroke="currentColor" stroke-opacity=".4"/>'
        )
    return _svg(float(width), float(height), body, caption)


def image(values: np.ndarray, *, caption: str = "") -> Markup:
    """Numbers `[x y]` as colored cells, x to the right and y upwards; of both signs with white at 0."""
    values = np.asarray(values)
    for axis in (0, 1):  # every so many cells
        stride = -(-values.shape[axis] // _MAX_CELLS)
        values = values[::stride] if axis == 0 else values[:, ::stride]
    values = values.astype(float)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return Markup("")
    low, high = float(finite.min()), float(finite.max())
    has_both_signs = min(-low, high) > _OTHER_SIGN * max(-low, high)
    if has_both_signs:
        high = max(-low, high)
        low = -high
    colors = _color_table(_DIVERGING if has_both_signs else _SEQUENTIAL)
    level = np.nan_to_num(_unit(values, low, high), nan=0.0, posinf=1.0, neginf=0.0)
    index = np.round(level * (_NOT_FINITE - 1)).astype(np.uint8)
    index[~np.isfinite(values)] = _NOT_FINITE
    png = _png(index.T[::-1], colors)
    # The longer side has the full length; a strip is thick enough to be seen.
    scale = _SIDE / max(values.shape)
    width, height = (max(round(n * scale), 12) for n in values.shape)
    title = escape(f"{caption}: {show_number(low)} … {show_number(high)}".removeprefix(": "))
    return Markup(
        f'<img src="{data_uri(png, "image/png")}" width="{width}" height="{height}" alt="{title}" '
        f'title="{title}" style="image-rendering: pixelated">'
    )


def data_uri(content: bytes, kind: str) -> str:
    """Bytes as an address that holds them, as `data:image/png;base64,…`."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def field_picture(values: np.ndarray, *, caption: str = "") -> Markup:
    """A real or complex array over a grid of one to three axes: a line, an image, or its middle plane.

    Of complex numbers the square of the magnitude is shown.
    """
    if values.ndim == 3:
        values = values[:, :, values.shape[2] // 2]
    # Reduced before anything is computed.
    values = sample(values, _MAX_CELLS**2 * 4)
    if np.iscomplexobj(values):
        values = np.abs(values) ** 2
    if values.ndim == 1:
        return curve(np.arange(len(values)), values, height=70, caption=caption)
    return image(values, caption=caption) if values.ndim == 2 else Markup("")


def _unit(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Numbers from 0 to 1; the middle where all are the same."""
    if high == low:
        return np.where(np.isfinite(values), 0.5, np.nan)
    return (values - low) / (high - low)


def _svg(width: float | int, height: float | int, body: str, title: str) -> Markup:
    text = escape(title.removeprefix(": "))
    return Markup(
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img"><title>{text}</title>{body}</svg>'
    )


def _color_table(stops: str) -> np.ndarray:
    """Colors between stops at equal distances, as `[256 3]` bytes; the last stands for what is not finite."""
    known = np.array([[int(c[k : k + 2], 16) for k in (0, 2, 4)] for c in stops.split()], float)
    at = np.append(np.linspace(0, len(known) - 1, _NOT_FINITE), 0)
    table = [np.interp(at, np.arange(len(known)), column) for column in known.T]
    return np.round(np.stack(table, axis=1)).astype(np.uint8)


def _png(index: np.ndarray, colors: np.ndarray) -> bytes:
    """An image `[rows columns]` of numbers of colors; the last color is transparent."""
    rows, columns = index.shape
    # Each row begins with 0: the bytes stand for themselves.
    body = np.hstack([np.zeros((rows, 1), np.uint8), index]).tobytes()
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        _png_chunk(kind, content)
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)),
            (b"PLTE", colors.tobytes()),
            (b"tRNS", bytes([255] * _NOT_FINITE + [0])),
            (b"IDAT", zlib.compress(body, 6)),
            (b"IEND", b""),
        )
    )


def _png_chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
