"""Components made of several fields: gases and layers of water."""
