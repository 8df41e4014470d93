"""Tracing: a function runs once on arrays without elements, and one program of nodes comes out."""
