"""One training in several processes, its ranks: all that knows of torch.distributed.

`world` says who takes part, `tensors` exchanges what a step computes, `ends` how a command ends on
every rank. A process alone is a world of one, in which each of them gives back what it was given.
"""
