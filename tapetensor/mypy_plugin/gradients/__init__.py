"""Gradients that do not arrive, in whole or in part, although no op says so.

An op on plain values is not recorded. Of ``x @ self.weight.transpose()`` the tape of `x` gets the
product alone, and `weight` trains as if it were not there: silently, where it takes part elsewhere
too, as a table of tokens does that is also the last layer. The same goes for a layer or a model
that is given a plain value, and for all upstream of an owner that is lent and then dropped.

For every outermost function its code is gone through, that of functions of the same file where
they are called. Of every value it is known from which parameters it was computed without a tape,
or which parameters its tape has met (`values`). Where the two meet, that is noted on the tape
(`ledger`). It is reported where gradients go back from there and are asked for: by ``wrt=`` or an
optimizer, if that is in sight. If not, those of a model that the tape has met are: those of a
teacher are not. What is meant as a constant says so by `detach`.

================  ===========================================================================
``places``        which model, part of it or parameter an expression means
``values``        what is known of a value
``fields``        what declared types tell; which fields are parameters
``ledger``        what ops do to values, and what of it is missed
``expressions``   the values of expressions
``tensors``       the values of calls of ops and layers
``calls``         the values of calls
``statements``    what statements do to variables
``hooks``         the reports
================  ===========================================================================
"""

from __future__ import annotations

from tapetensor.mypy_plugin.gradients.hooks import function_result, method_result

__all__ = ["function_result", "method_result"]
