"""Integer files some layers of which are in int16 or float: which ones need it is found by conversions."""
