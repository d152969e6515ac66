"""Relations between particles that hold at every instant: fixed distances, rigid molecules."""
