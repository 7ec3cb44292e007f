"""Changes: the one door through which the console changes something."""
