"""Where A lives."""
