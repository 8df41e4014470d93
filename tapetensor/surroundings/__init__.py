"""What a function finds around itself: what its code names, what that leads to, and how it was."""
