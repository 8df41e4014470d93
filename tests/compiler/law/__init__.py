"""The law of ``tt.compile``: the function's own answer, or an error that names line and cure."""
