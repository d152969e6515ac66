"""`Reversible`: derivatives by running a simulation backward, bit by bit, instead of storing its states.

Read in this order:

1. `_reversible`: the adjoint, and what it promises;
2. `_requirements`, `_fixed_point_state`: which simulations qualify, and the exact form of their states;
3. `_forward`: the forward map  xₙ₊₁ = Φₙ(xₙ),  shears on fixed-point numbers;
4. `_inverse_step`: its inverse  xₙ = Φₙ⁻¹(xₙ₊₁);
5. `_backward_state`, `_cotangents`: the recursion  λₙ = (∂Φₙ/∂x)ᵀ λₙ₊₁;
6. `_backward`, `_migrate_backward`: both together, in nested loops, over devices;
7. `_custom_vjp`: forward and backward as one differentiable function;
8. `_reversibility_report`: forward and back without derivatives, to see where bits are lost.
"""
