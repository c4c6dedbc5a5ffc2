"""The options of functions and commands, each declared once, and the checks of arguments."""
