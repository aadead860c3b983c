"""What the administrator decides."""
