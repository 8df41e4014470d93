"""What functions are given, checked: numbers, shapes and axes, one of a few choices.

``as_...`` returns the value converted, ``check_...`` only raises. All begin with the name of the op
for the message. What asks for a tensor, a module or an array stands where those are.
"""
