"""What is behind ``python -m tapetensor``: beginning a project, explaining an error."""
