"""The PyTorch frontend: adapters from its calls to ATen-style ops; ``tracing/`` records the calls."""
