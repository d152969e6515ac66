"""Steps of fields that are staggered in time: light, sound, elastic waves."""
