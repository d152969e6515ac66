"""runge_kutta."""
