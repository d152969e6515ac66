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

from physkit.core import custom_jvp, linear_call

from .._register import Register
from ._block_matrices import block_matrices, block_stacks
from ._gate_fusion import Axes, Block, block_rows, plan_blocks
from ._ordered_array import OrderedArray

Operands = tuple[
    list[Array], list[Any]
]  # matrices of blocks, stacked by their dimensions; large gates


def apply_gates(
    gates: Sequence[Any], x: Array, register: Register, is_unitary: bool = True
) -> Array:
    """The gates one after the other on the numbers of a register.

    - `is_unitary`: whether to run backwards for the derivative; JAX's derivative stores states. That is taken
      over devices, too.
    """
    dims = register.dims
    rows = block_rows(dims, math.prod(register.local_dims))
    blocks = plan_blocks(tuple(gate.sites for gate in gates), dims, rows)
    program = _Program(blocks, register, rows)
    fused = [block for block in blocks if program.is_fused(block)]
    large = [gates[k] for block in blocks if not program.is_fused(block) for k in block.members]
    operands = (block_matrices(gates, fused, dims, x.dtype), large)
    # The rule of a derivative may not hold exchanges: devices that are emulated have no names there.
    if is_unitary and not register.num_cut:
        return _reversible(program, operands, x)
    return program.run(operands, x)


@dataclass(frozen=True)
class _Program:
    """Blocks on a register. Hashable: what the derivative's rule is compiled by."""

    blocks: tuple[Block, ...]
    register: Register
    rows: int

    def is_fused(self, block: Block) -> bool:
        """Whether it is a matrix, not a gate too large for one."""
        return math.prod(self.register.dims[a] for a in block.axes) <= self.rows

    def steps(self, operands: Operands) -> list[tuple[Axes, Any, tuple]]:
        """For each block its axes, its matrix or large gate, and the place of that among the operands."""
        matrices, gates = operands
        fused = [k for k, block in enumerate(self.blocks) if self.is_fused(block)]
        large = [k for k in range(len(self.blocks)) if k not in fused]
        stacks = block_stacks([self.blocks[k] for k in fused], self.register.dims).values()
        places = {
            fused[b]: (s, row) for s, stack in enumerate(stacks) for row, b in enumerate(stack)
        }
        return [
            (block.axes, matrices[places[k][0]][places[k][1]], places[k])
            if k in places
            else (block.axes, gates[large.index(k)], (None, large.index(k)))
            for k, block in enumerate(self.blocks)
        ]

    def run(self, operands: Operands, x: Array) -> Array:
        """The blocks one after the other."""
        state = OrderedArray.of(x, self.register)
        for axes, operand, _ in self.steps(operands):
            state = state.contract(operand, axes) if _is_matrix(operand) else state.apply(operand)
        return state.array()

    def push_forward(self, residuals: tuple, tangents: tuple) -> Array:
        """The tangent of the end, beside the states from the start on."""
        (operands, end), (operand_tangents, dx) = residuals, tangents
        state, tangent = OrderedArray.of(end, self.register), OrderedArray.of(dx, self.register)
        steps = self.steps(operands)
        for axes, operand, _ in reversed(steps):
            state = state.undo(operand, axes)
        state = OrderedArray.of(state.array(), self.register)  # in the order of the tangent
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
                state, tangent = (
                    OrderedArray.of(x, self.register),
                    OrderedArray.of(dx, self.register),
                )
        return tangent.array()

    def pull_back(self, residuals: tuple, cotangent: Array) -> tuple[Operands, Array]:
        """The cotangents of operands and start, from the end on."""
        operands, end = residuals
        state = OrderedArray.of(end, self.register)
        adjoint = OrderedArray.of(cotangent, self.register)
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
                adjoint = OrderedArray.of(jax.lax.optimization_barrier(x), self.register)
        return ([jnp.stack(stack) for stack in matrices], gates), adjoint.array()


@functools.partial(custom_jvp, nondiff_argnums=(0,))
def _reversible(program: _Program, operands: Operands, x: Array) -> Array:
    return program.run(operands, x)


@_reversible.defjvp
def _reversible_jvp(program: _Program, primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    end = _reversible(program, *primals)
    residuals = (primals[0], end)
    maps = program.push_forward, program.pull_back
    return end, linear_call(*maps, residuals, tangents, result=end)


def _is_matrix(operand: Any) -> bool:
    return isinstance(operand, jax.Array)


def _apply(gate: Any, x: Array) -> Array:
    return gate.apply(x)
