"""Other forms of operators, for profiles that do not run the usual ones."""
