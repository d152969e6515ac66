"""Fits, audits and draws from posteriors as files, of which reports are made."""
