"""The page of ``tmconvert view``: graphs, statistics of constants, and quantization noise.

Python makes one JSON document; the scripts in ``assets`` draw it.
"""
