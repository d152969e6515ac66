"""The subsystems of a state, of which the leading ones may lie on different devices."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from physkit.core import DeviceError, PyTree, static
from physkit.geometry import AbstractDomain
from physkit.parallel import AbstractComm, SerialComm


class Register(AbstractDomain):
    """Dimensions of the subsystems, and the devices: axis k of these is subsystem k, a level on each.

    A device's numbers have axes of length 1 for the subsystems that are cut.
    """

    dims: tuple[int, ...] = static()
    comm: AbstractComm = static(default=SerialComm())

    @property
    def num_cut(self) -> int:
        """How many leading subsystems lie over devices."""
        return len(self.comm.shape) if self.comm.size > 1 else 0

    @property
    def local_dims(self) -> tuple[int, ...]:
        """The shape of what this device has."""
        return (*(1 for _ in range(self.num_cut)), *self.dims[self.num_cut :])

    def check_devices(self, devices: tuple[int, ...]) -> None:
        """**Errors:** `DeviceError` for devices that do not cut whole subsystems."""
        cut = tuple(n for n in devices if n > 1)
        if cut != tuple(self.dims[: len(cut)]) or len(cut) == len(self.dims):
            raise DeviceError(
                f"a state of dimensions {list(self.dims)} over devices={devices}: they are as many along "
                "axis k as subsystem k has levels, (2, 2) for four devices and qubits, and leave one "
                "subsystem whole"
            )

    def require_whole(self, what: str) -> None:
        """**Errors:** `DeviceError` where the register is cut over devices."""
        if self.num_cut:
            raise DeviceError(
                f"{what} is not computed over devices: circuits, sums of Pauli strings, norms and "
                "probabilities are; run it on one device"
            )

    # --- sums ---------------------------------------------------------------------------------------

    def sum(self, x: PyTree) -> PyTree:
        """The sum of the devices' numbers."""
        return self.comm.psum(x) if self.num_cut else x

    def marginal(self, x: Float[Array, "..."], kept: tuple[int, ...]) -> Array:
        """The sum over all subsystems but `kept`, in their numbers' order, of this register's numbers."""
        x = jnp.sum(x, axis=tuple(k for k in range(len(self.dims)) if k not in kept), keepdims=True)
        for k in kept:
            if k < self.num_cut:  # this device's level, among zeros for others
                is_here = jnp.arange(self.dims[k], dtype=jnp.int32) == self.comm.axis_index(k)
                x = x * self._along(k, is_here.astype(x.dtype))
        return self.sum(x.reshape([self.dims[k] for k in sorted(kept)]))

    # --- Pauli matrices -------------------------------------------------------------------------------

    def signs(self, axis: int, dtype: jnp.dtype) -> Array:
        """±1 by the level of a qubit, ready to broadcast."""
        if axis < self.num_cut:
            return (1 - 2 * jnp.asarray(self.comm.axis_index(axis))).astype(dtype)
        return self._along(axis, jnp.array([1, -1], dtype))

    def flip(self, x: Array, axis: int) -> Array:
        """The two levels of a cut qubit exchanged: devices send each other all they have."""
        return self.comm.ring_shift(x, axis, 1)

    # --- exchange -------------------------------------------------------------------------------------

    def exchange(self, table: Array, device_axis: int) -> Array:
        """`[levels, …]` of a subsystem on this device, against that which lies along `device_axis`.

        Each device keeps the level of its own number, and gets that of the other subsystem from all others:
        of two levels half of the numbers travel.
        """
        return self.comm.all_to_all(table, device_axis, 0, 0)

    def _along(self, axis: int, values: Array) -> Array:
        shape = [1] * len(self.dims)
        shape[axis] = len(values)
        return values.reshape(shape)
