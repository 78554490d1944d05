"""The systems without a network: image descriptors, neighbour graphs, SSPL and PARM."""
