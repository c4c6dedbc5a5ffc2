"""What users do to a model between loading and converting it: runs, patterns, passes, decompositions."""
