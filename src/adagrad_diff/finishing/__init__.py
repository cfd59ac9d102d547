"""From an approximate answer to an exact one."""
