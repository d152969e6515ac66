"""Circuits on the numbers of a state. The derivative of a unitary one computes its states again backwards.

ψ_{k−1} = U_k† ψ_k,   λ_{k−1} = U_kᵀ λ_k,   Ū_k = λ_k ψ_{k−1}ᵀ

U_k is the matrix of a block of gates; from Ū_k on, JAX's derivative of small matrices goes to the angles.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from physkit.core import linear_call

from ._block_matrices import block_matrices, block_stacks
from ._gate_fusion import Axes, Block, block_rows, plan_blocks

Operands = tuple[
    list[Array], list[Any]
]  # matrices of blocks, stacked by their dimensions; large gates


def apply_gates(gates: Sequence[Any], x: Array, is_unitary: bool = True) -> Array:
    """The gates one after the other on the axes of `x`, one for each subsystem.

    - `is_unitary`: whether to run backwards for the derivative; JAX's derivative stores states.
    """
    dims = x.shape
    blocks = plan_blocks(tuple(gate.sites for gate in gates), dims)
    fused = [b for b in blocks if math.prod(dims[a] for a in b.axes) <= block_rows(dims)]
    large = [gates[k] for b in blocks if b not in fused for k in b.members]
    operands = (block_matrices(gates, fused, dims, x.dtype), large)
    program = _Program(blocks, dims)
    return _reversible(program, operands, x) if is_unitary else program.run(operands, x)


@dataclass(frozen=True)
class _Program:
    """Blocks on a state of some dimensions. Hashable: what the derivative's rule is compiled by."""

    blocks: tuple[Block, ...]
    dims: Axes

    def steps(self, operands: Operands) -> list[tuple[Axes, Any, tuple]]:
        """For each block its axes, its matrix or large gate, and the place of that among the operands."""
        matrices, gates = operands
        fused = [k for k, block in enumerate(self.blocks) if self._is_fused(block)]
        large = [k for k in range(len(self.blocks)) if k not in fused]
        stacks = block_stacks([self.blocks[k] for k in fused], self.dims).values()
        places = {
            fused[b]: (s, row) for s, stack in enumerate(stacks) for row, b in enumerate(stack)
        }
        return [
            (block.axes, matrices[places[k][0]][places[k][1]], places[k])
            if k in places
            else (block.axes, gates[large.index(k)], (None, large.index(k)))
            for k, block in enumerate(self.blocks)
        ]

    def _is_fused(self, block: Block) -> bool:
        return math.prod(self.dims[a] for a in block.axes) <= block_rows(self.dims)

    def run(self, operands: Operands, x: Array) -> Array:
        """The blocks one after the other."""
        state = _Ordered.of(x)
        for axes, operand, _ in self.steps(operands):
            state = state.contract(operand, axes) if _is_matrix(operand) else state.apply(operand)
        return state.array()

    def push_forward(self, residuals: tuple, tangents: tuple) -> Array:
        """The tangent of the end, beside the states from the start on."""
        (operands, end), (operand_tangents, dx) = residuals, tangents
        state, tangent = _Ordered.of(end), _Ordered.of(dx)
        steps = self.steps(operands)
        for axes, operand, _ in reversed(steps):
            state = state.undo(operand, axes)
        state = _Ordered.of(state.array())  # in the order of the tangent
        for (axes, operand, _), (_, d_operand, _) in zip(
            steps, self.steps(operand_tangents), strict=True
        ):
            if _is_matrix(operand):
                change = state.contract(d_operand, axes)
                state, tangent = state.contract(operand, axes), tangent.contract(operand, axes)
                tangent = replace(tangent, data=tangent.data + change.data)
            else:
                x, dx = state.array(), tangent.array()
                x, dx = jax.jvp(_apply, (operand, x), (d_operand, dx))
                state, tangent = _Ordered.of(x), _Ordered.of(dx)
        return tangent.array()

    def pull_back(self, residuals: tuple, cotangent: Array) -> tuple[Operands, Array]:
        """The cotangents of operands and start, from the end on."""
        operands, end = residuals
        state, adjoint = _Ordered.of(end), _Ordered.of(cotangent)
        matrices: list[list[Any]] = [[None] * len(stack) for stack in operands[0]]
        gates: list[Any] = [None] * len(operands[1])
        for axes, operand, (stack, place) in reversed(self.steps(operands)):
            state = state.undo(operand, axes)
            if _is_matrix(operand):
                matrices[stack][place] = adjoint.outer(state, axes)
                adjoint = adjoint.contract(operand.T, axes)
            else:
                _, pullback = jax.vjp(_apply, operand, state.array())
                gates[place], x = pullback(adjoint.array())
                adjoint = _Ordered.of(jax.lax.optimization_barrier(x))
        return ([jnp.stack(stack) for stack in matrices], gates), adjoint.array()


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _reversible(program: _Program, operands: Operands, x: Array) -> Array:
    return program.run(operands, x)


@_reversible.defjvp
def _reversible_jvp(program: _Program, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    end = _reversible(program, *primals)
    residuals = (primals[0], end)
    return end, linear_call(program.push_forward, program.pull_back, residuals, tangents)


@dataclass(frozen=True)
class _Ordered:
    """The numbers of a state with the axes in another order, which changes from block to block.

    A product leaves its axes last; nothing is moved back before it has to be.
    """

    data: Array
    order: Axes
    dims: Axes

    @staticmethod
    def of(x: Array) -> "_Ordered":
        return _Ordered(x, tuple(range(x.ndim)), x.shape)

    def array(self) -> Array:
        """The numbers with the axes as they are numbered."""
        return self._ordered_by(tuple(range(len(self.order)))).reshape(self.dims)

    def contract(self, matrix: Array, axes: Axes) -> "_Ordered":
        """Σⱼ mᵢⱼ xⱼ over the joint index of `axes`."""
        table, contracted = self._table(axes)
        product = _dot(table, matrix, contracted, 1)
        return _Ordered(product, self._others(axes) + axes, self.dims)

    def apply(self, gate: Any) -> "_Ordered":
        # Chains of gates that are fused compile for minutes.
        return _Ordered.of(jax.lax.optimization_barrier(gate.apply(self.array())))

    def undo(self, operand: Any, axes: Axes) -> "_Ordered":
        """The inverse of a unitary matrix or gate."""
        if _is_matrix(operand):
            return self.contract(jnp.conj(operand.T), axes)
        return self.apply(operand.inverse())

    def outer(self, other: "_Ordered", axes: Axes) -> Array:
        """Σ xᵢ yⱼ over all but the joint indices of `axes`."""
        (a, i), (b, j) = self._table(axes), other._table(axes)
        return _dot(a, b, 1 - i, 1 - j)

    def _table(self, axes: Axes) -> tuple[Array, int]:
        """The numbers as a matrix with `axes` on one side, and which side that is."""
        rows, others = math.prod(self.dims[a] for a in axes), self._others(axes)
        if self.order[-1] in axes:  # what is contiguous stays so
            return self._ordered_by(others + axes).reshape(-1, rows), 1
        return self._ordered_by(axes + others).reshape(rows, -1), 0

    def _others(self, axes: Axes) -> Axes:
        return tuple(a for a in self.order if a not in axes)

    def _ordered_by(self, order: Axes) -> Array:
        return _transpose(self.data, self._shape(), tuple(self.order.index(a) for a in order))

    def _shape(self) -> Axes:
        return tuple(self.dims[a] for a in self.order)


def _transpose(x: Array, shape: Axes, order: tuple[int, ...]) -> Array:
    """`x`, of `shape`, with its axes in another order: neighbors that stay together move as one axis."""
    runs: list[list[int]] = []
    for axis in order:
        if runs and runs[-1][-1] + 1 == axis:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if len(runs) == 1:
        return x
    by_place = sorted(runs)
    merged = x.reshape([math.prod(shape[a] for a in run) for run in by_place])
    return jnp.transpose(merged, [by_place.index(run) for run in runs])


def _dot(a: Array, b: Array, i: int, j: int) -> Array:
    """The product of two matrices over axis i of the one and j of the other."""
    numbers = (((i,), (j,)), ((), ()))
    return jax.lax.dot_general(a, b, numbers, precision=jax.lax.Precision.HIGHEST)


def _is_matrix(operand: Any) -> bool:
    return isinstance(operand, jax.Array)


def _apply(gate: Any, x: Array) -> Array:
    return gate.apply(x)
