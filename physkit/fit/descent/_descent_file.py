"""The file of a descent, from which it goes on where it was stopped."""

import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physkit.core import FileError, MismatchError, Module, PyTree, data, static
from physkit.storage import digest, fingerprint, load_checkpoint, program_digest, save_checkpoint


class SavedDescent(Module):
    """What is in the file.

    - `fit`: a digest of the problem, its numbers and the method, by which the file of another fit is refused.
    - `losses`, `gradients`: `[steps s]`, of the steps taken.
    """

    fit: str = static()
    losses: Float[Array, "n s"] = data()
    gradients: Float[Array, "n s"] = data()
    state: PyTree


@dataclasses.dataclass(frozen=True)
class DescentFile:
    """Where a descent is kept, and of which fit."""

    path: Path
    fit: str

    @staticmethod
    def of(path: Path | None, method: Any, problem: Any, numbers: PyTree) -> "DescentFile | None":
        """The file at `path`, if any, for this descent."""
        if path is None:
            return None
        z, inputs, _ = numbers
        closed, _, _ = eqx.filter_make_jaxpr(problem.value)(z[0], inputs)
        # The optimizer is functions, whose closures hold its numbers.
        description = fingerprint({"numbers": numbers, "optimizer": tuple(method.optimizer)})
        # Not the number of steps: with more of them it goes on.
        choices = (method.patience, method.tolerance, method.batch_rows)
        description |= {"program": program_digest(closed), "method": repr(choices)}
        return DescentFile(path, digest(description))

    def save(self, state: PyTree, losses: list[np.ndarray], gradients: list[np.ndarray]) -> None:
        """Replace what the file holds."""
        save_checkpoint(
            self.path, self._tree(state, np.concatenate(losses), np.concatenate(gradients))
        )

    def load(self, state: PyTree, starts: int) -> tuple[PyTree, list[np.ndarray], list[np.ndarray]]:
        """State, losses and gradients so far; those of the start where there is no file.

        **Errors:** `MismatchError` for the file of another fit, `DamagedFileError` for a broken one,
        `FileError` for a folder.
        """
        if not self.path.exists():
            return state, [], []
        if self.path.is_dir():
            raise FileError(
                f"{self.path} is a folder: a descent is kept in one file, such as {self.path / 'descent.h5'}"
            )

        def blank(devices: object, shapes: dict[str, tuple[int, ...]]) -> SavedDescent:
            (steps, *_) = shapes.get(".losses") or (0,)
            table = np.zeros((steps, starts))
            return self._tree(state, table, table)

        try:
            saved = load_checkpoint(self.path, None, make_template=blank).tree
        except MismatchError as error:
            # The file knows a digest of them all, which says that one differs, not which.
            raise MismatchError(
                f"{self.path} is of another fit: the objective, where=, start, bounds, data, key, "
                "optimizer or precision was another. Go on with the call that wrote it, or give this one "
                "another file"
            ) from error
        return saved.state, [np.asarray(saved.losses)], [np.asarray(saved.gradients)]

    def _tree(self, state: PyTree, losses: np.ndarray, gradients: np.ndarray) -> SavedDescent:
        # In JAX's precision, as the table is that `load` compares the file with.
        return SavedDescent(self.fit, jnp.asarray(losses), jnp.asarray(gradients), state)
