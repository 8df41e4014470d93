"""The mathematics: arrays in, the output and one pullback per operand out.

A kernel is a plain function on arrays. It knows nothing of tensors, tapes or types, writes to no
operand, and goes through numpy's own dispatch only, so that it runs on any array that implements
numpy's protocols. A pullback takes the cotangent of the output and returns that of one operand; it
captures the arrays that it needs and never writes to its argument. None stands where an operand has
nothing to differentiate.

Where operands may lie in several orders of memory, and one is a temporary value, a kernel calls
`np.multiply(g, np.sign(x))`: of ``g * np.sign(x)`` numpy writes a large result over the temporary
value, so that its order, and with it the last digits of later sums, would depend on the size. And a
bound operator, as ``y.__mul__``, may write over `y` itself.
"""
