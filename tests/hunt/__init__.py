"""The hunt for silent failures: compositions drawn at random, against plain NumPy.

    python -m tests.hunt 1234            one draw, and what became of it
    python -m tests.hunt 0 2000          all of them; only what is wrong is shown at length
    python -m tests.hunt 0 2000 sweeps   those of a family, of `draws.FAMILIES`

Each draw puts physkit's public parts together, perturbs them as users do, and takes only three outcomes: the
numbers of a reference written apart from physkit, an error or a fault that names the cause, or, where there is
no reference, an invariant. Everything about a draw follows from its number.
"""
