"""How stencils are computed: in one pass by native code, slab by slab, each part once."""
