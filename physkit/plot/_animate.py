"""Films of moving particles."""

import dataclasses
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from physkit.core import MissingExtraError, ParameterError, explain_call
from physkit.fields import Field
from physkit.html import data_uri

from ._film_frames import draw_pictures
from ._particles import particles
from ._style import FigureSize
from ._types import Picture
from .fields._fields import field, limits_of_all


@dataclasses.dataclass(frozen=True, repr=False)
class Film:
    """A film in memory, which notebooks show: the bytes of a file, and its ending, `.gif` or `.mp4`."""

    content: bytes
    ending: str

    def save(self, path: str | os.PathLike) -> Path:
        """Write the film to `path`, which must have its ending.

        **Errors:** `ParameterError` for another ending.
        """
        path = Path(path)
        if path.suffix.lower() != self.ending:
            raise ParameterError(f"this film is a {self.ending}; got {path.name!r}")
        path.write_bytes(self.content)
        return path

    def _repr_html_(self) -> str:
        if self.ending == ".gif":
            return f'<img src="{data_uri(self.content, "image/gif")}" alt="film">'
        source = data_uri(self.content, "video/mp4")
        return f'<video src="{source}" controls autoplay loop muted playsinline></video>'

    def __repr__(self) -> str:
        return (
            f"<film {self.ending}, {len(self.content) / 2**20:.2g} MiB: film.save(path) writes it>"
        )


@explain_call
def animate(
    frames: Iterable[Any],
    path: str | os.PathLike | None = None,
    *,
    draw: Callable[..., Any] = particles,
    fps: int = 25,
    size: FigureSize = (4.8, 4.8),
    dpi: int = 110,
    hold: bool = True,
) -> Path | Film:
    """Draw each frame and write a film: `.gif`, or `.mp4` where the program ffmpeg is installed.

        states = [state.replace(position=x) for x in result.frames["position"][::5]]
        animate(states, "melt.gif", draw=partial(particles, color="speed", limits=(0, 4)))

    Without a path a notebook shows the film. A list of fields that `field` draws has the colors of all of them,
    so that a color means the same in every frame. Axes, labels and color bars are drawn once where they stay
    the same: of other frames give `limits` of colors.

    **Arguments:**

    - `frames`: anything to draw; an iterator is fine, one frame is held at a time.
    - `path`: where to write; the ending decides the format. Written beside it and renamed when
      complete. If left out, nothing is written.
    - `draw`: called as `draw(frame, ax=ax)` on empty axes; any function of this folder will do.
    - `fps`: frames a second. GIF knows hundredths of a second only: 10, 20, 25, 50.
    - `size`: inches; `dpi`: dots per inch.
    - `hold`: keep the limits of the first frame's axes, so that the picture does not jump.

    **Returns:** the path written; a `Film` without one.

    **Errors:** `MissingExtraError` for MP4 without ffmpeg; `ParameterError` for another ending, no
    frames, or fps below 1.
    """
    draw = _with_colors_of_all(draw, frames)
    if path is None:
        return _film_in_memory(frames, draw, fps, size, dpi, hold)
    path = Path(path)
    if path.suffix.lower() not in (".gif", ".mp4"):
        raise ParameterError(f"a film ends in .gif or .mp4; got {path.name!r}")
    if fps < 1:
        raise ParameterError(f"fps must be at least 1; got {fps}")
    is_film = path.suffix.lower() == ".mp4"
    if is_film and shutil.which("ffmpeg") is None:
        raise MissingExtraError(
            "writing MP4 needs the program ffmpeg, which is not on the PATH: install it with your "
            "system's package manager (apt, dnf, brew or conda install ffmpeg), or write a .gif"
        )
    # The ending stays: Pillow and ffmpeg choose the format by it.
    part = path.with_name(f"{path.stem}.part{path.suffix}")
    pictures = draw_pictures(frames, draw, size, dpi, hold)
    try:
        (_write_mp4 if is_film else _write_gif)(pictures, part, fps)
        os.replace(part, path)
    finally:
        # Renamed, or left behind by an error.
        part.unlink(missing_ok=True)
    return path


def _with_colors_of_all(draw: Callable[..., Any], frames: Iterable[Any]) -> Callable[..., Any]:
    """`draw` with limits of its colors that suit all frames, where these can be looked at beforehand."""
    chosen: dict[str, Any] = {}
    if isinstance(draw, functools.partial) and not draw.args:
        draw, chosen = draw.func, draw.keywords
    is_list = isinstance(frames, Sequence) and all(isinstance(frame, Field) for frame in frames)
    if draw is field and is_list and frames and "limits" not in chosen:
        looked_at = {key: chosen[key] for key in ("component", "cut") if key in chosen}
        chosen = {**chosen, "limits": limits_of_all(frames, **looked_at)}
    return functools.partial(draw, **chosen) if chosen else draw


def _film_in_memory(
    frames: Iterable[Any],
    draw: Callable[..., Any],
    fps: int,
    size: FigureSize,
    dpi: int,
    hold: bool,
) -> Film:
    """A film for a notebook: H.264 where there is ffmpeg, which is small and can be stopped; else GIF."""
    ending = ".gif" if shutil.which("ffmpeg") is None else ".mp4"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"film{ending}"
        animate(frames, path, draw=draw, fps=fps, size=size, dpi=dpi, hold=hold)
        return Film(path.read_bytes(), ending)


def _write_gif(pictures: Iterable[Picture], path: Path, fps: int) -> None:
    from PIL import Image

    # One palette for all, from the first frame, and no dithering: nothing flickers.
    first, reduced = None, []
    for picture in pictures:
        if first is None:
            first = picture.quantize(255, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            # The median cut makes the paper nearly white: make it white.
            levels = first.getpalette()
            white = [k for k in range(0, len(levels), 3) if min(levels[k : k + 3]) > 240]
            for k in white:
                levels[k : k + 3] = [255, 255, 255]
            first.putpalette(levels)
            reduced.append(first)
        else:
            reduced.append(picture.quantize(palette=first, dither=Image.Dither.NONE))
    if first is None:
        raise ParameterError("no frames to draw")
    # GIF counts hundredths of a second, and browsers slow down films of less than two of them.
    milliseconds = max(20, round(100 / fps) * 10)
    reduced[0].save(
        path, save_all=True, append_images=reduced[1:], duration=milliseconds, loop=0, disposal=1
    )


def _write_mp4(pictures: Iterable[Picture], path: Path, fps: int) -> None:
    import subprocess

    # Raw pixels go through a pipe: one picture is in memory at a time, and no file for each is written.
    process, size = None, None
    try:
        for picture in pictures:
            if process is None:
                # Started with the first picture, whose size it must be told.
                size = f"{picture.width}x{picture.height}"
                command = (
                    f"ffmpeg -y -loglevel error -f rawvideo -pix_fmt rgb24 -s {size} -r {fps} -i -"
                )
                command += " -c:v libx264 -pix_fmt yuv420p -crf 18 -movflags +faststart"
                process = subprocess.Popen(
                    [*command.split(), str(path)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
                )
            try:
                process.stdin.write(picture.tobytes())
            except BrokenPipeError:
                break  # it has ended, and its message says why
        if process is None:
            raise ParameterError("no frames to draw")
        _, message = process.communicate()
    finally:
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()
    if process.returncode:
        raise MissingExtraError(f"ffmpeg could not write the film: {message.decode().strip()}")
