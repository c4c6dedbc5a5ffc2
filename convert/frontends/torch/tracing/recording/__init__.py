"""Records the calls of one run of a module, and builds graphs from them."""
