"""Operations on a model between loading and conversion: runs, patterns, passes, decompositions."""
