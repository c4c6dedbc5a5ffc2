"""Conversions of many models: configuration files, their execution, and the record of what is finished."""
