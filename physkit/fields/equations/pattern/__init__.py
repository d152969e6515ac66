"""Equations of patterns: phases that part, rolls and crystals, waves that turn."""
