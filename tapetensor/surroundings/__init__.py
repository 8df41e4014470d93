"""The surroundings of a function: the names in its code, the objects behind them, their state."""
