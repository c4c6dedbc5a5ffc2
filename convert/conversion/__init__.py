"""One conversion: the request, the stages, and the report."""
