"""The mathematics: arrays in, the output and one pullback per operand out.

A kernel is a plain function on arrays. It knows nothing of tensors, tapes or types, writes to no
operand, and goes through numpy's own dispatch only, so that it runs on any array that implements
numpy's protocols. A pullback takes the cotangent of the output and returns that of one operand; it
captures the arrays that it needs and never writes to its argument. None stands where an operand has
nothing to differentiate.
"""
