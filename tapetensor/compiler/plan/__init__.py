"""Planning: which steps run together, in which order, and where every value lies in memory."""
