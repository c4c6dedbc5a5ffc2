"""Runs commands as on other processors, for tests and benchmarks; not part of the package.

``masked`` and ``cpuid_mask.c`` hide instruction sets of an x86 processor from a program that runs natively,
``emulated`` runs it in qemu, ``arm64`` makes a Python with the runtimes for 64-bit ARM.
"""
