"""Quantities: functions of a snapshot whose values are recorded, averaged or correlated."""
