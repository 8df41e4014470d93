"""The commands of ``python -m tapetensor``, which begin a project or explain an error."""
