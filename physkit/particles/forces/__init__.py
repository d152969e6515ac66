"""Forces on particles."""

from ._force import AbstractForce as AbstractForce, Forces as Forces
