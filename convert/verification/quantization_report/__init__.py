"""What integers cost, layer by layer, as text, JSON and a page."""
