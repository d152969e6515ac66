"""Standard errors of fitted parameters and the spectrum of their information."""
