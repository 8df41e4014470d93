"""Shape rules: what an op makes of shapes, or one sentence that says why it makes nothing of them.

A rule is a pure function of the name of the op, of shapes and of options. It raises a ShapeError of
shapes that surely do not fit, an AxisError of axes and indices, and an ArgumentValueError of other
arguments. A dim is a size, a name, what is computed from names, or open: the mypy plugin asks with
what it has read from types, the run time with sizes, where numpy or a quick check of its own has
refused them. A few rules are no more than such a check, and take plain ints. So both say one
sentence.
"""
