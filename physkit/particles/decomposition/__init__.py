"""Domain decomposition: which device owns which particles, and how they change devices.

A box is cut into slabs along one axis, one for each device. Everything here knows arrays with a row for
each particle, and nothing of what the particles are.
"""
