"""The archive of our own containers: ZIP, JSON and safetensors."""
