"""Knowledge of file formats that are both read and written: messages, schemas, layers."""
