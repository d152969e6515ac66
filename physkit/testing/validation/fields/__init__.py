"""Published numbers of fields: flows, gas, waves, reactions."""
