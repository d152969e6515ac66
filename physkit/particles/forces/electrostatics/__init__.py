"""Charges in periodic cells."""
